-- Decides which messages of streams claims may find: of a strict stream its first, or one that
-- may pass it; of a relaxed one the first that is due.
--
-- The first message without a row gets a token if nothing else is in its stream, and a row if
-- there is. While it has a token, or is claimed, nothing else of the stream goes. Where a strict
-- stream has nothing left, it gets an unresolved token: a transaction that this statement does
-- not see may have appended a message.
--
-- Rows are found by arrays of their keys: PostgreSQL uses the index for these also where it
-- knows nothing of a table yet.
-- in: queues — numbers of the queues of the streams
-- in: names — of the streams, whose rows are locked
-- in: now — the time
-- locks: pending
-- out: names of queues in which something may be claimed now
with
  s as materialized (
    select
      s.n, s.queue,
      greatest(
        s.top,
        (
          select m.pos
          from @.message m
          where m.ordered_stream = s.n and m.pos < coalesce(f.pos, 9223372036854775807)
          order by m.pos desc
          limit 1
        )
      ) as top,
      greatest(s.at, f.pos - 1) as at, s.has_token and f.pos is not null as has_token, f.pos as head,
      q.name, q.strict
    from @.stream s
    join @.queue q on q.n = s.queue
    left join lateral ({{first_without_row}}) f on true
    where {{streams_named}}
  ),
  v as materialized (
    select
      s.n, s.queue, s.name, s.strict, s.top, s.at, s.has_token,
      case when s.has_token then s.head else leased.pos end as leased,
      first.pos as first, coalesce(first.rowless, false) as rowless, coalesce(first.due, 0) as due,
      {{is_held_up}} as dead,
      exists (select from @.pending p where p.stream = s.n)
        or exists (select from @.letter l where l.stream = s.n)
        or coalesce(first.rowless and first.pos < s.top, false) as mixed
    from s
    left join lateral (
      select p.pos
      from @.pending p
      where p.stream = s.n and p.stream is not null and p.state = 1
      limit 1
    ) leased on true
    {{join_first}}
  ),
  w as materialized (
    select
      v.n, v.queue, v.name, v.mixed, v.top,
      v.leased is null and v.dead as blocked,
      case when v.leased is null and not v.dead then v.first end as head,
      v.leased is null and not v.dead and v.rowless and v.mixed as enters,
      v.leased is null and v.rowless and not v.mixed as gets_token,
      v.has_token or not v.mixed as has_token,
      case when v.leased is null and v.mixed then v.due else 0 end as due,
      case when v.leased is null and not v.dead and v.rowless and v.mixed then v.first else v.at end as at,
      passer.pos as passer,
      v.strict and v.first is null and v.leased is null as ends,
      not v.strict
        and v.first is null
        and v.leased is null
        and not exists (select from @.letter l where l.stream = v.n) as empty
    from v
    left join lateral (
      select p.pos
      from @.pending p
      where v.leased is null
        and v.strict
        and (v.dead or v.due > :now::bigint)
        and p.stream = v.n
        and p.may_pass
        and (v.dead or p.pos <> v.first)
      order by p.due, p.rank
      limit 1
    ) passer on true
  ),
  demoted as (
    update @.pending p set state = 6
    where p.state = 0
      and p.pos = any(array(
        select x.pos
        from w
        cross join lateral (
          select r.pos
          from @.pending r
          where r.stream = w.n
            and r.stream is not null
            and r.state = 0
            and r.pos is distinct from w.head
            and r.pos is distinct from w.passer
          offset 0
        ) x
      ))
  ),
  promoted as (
    update @.pending p set state = 0
    where p.state = 6
      and p.pos = any(array(
        select head from w where head is not null
        union all
        select passer from w where passer is not null
      ))
  ),
  entered as (
    insert into @.pending ({{ordered_columns}})
    select 0, {{ordered_values}}
    from w
    cross join lateral (select * from @.message m where m.pos = w.head limit 1) m
    where w.enters
  ),
  ended as (delete from @.stream s where s.n = any(array(select n from w where empty))),
  given as (
    insert into @.token (queue, streams, positions)
    select queue, array_agg(n), array_agg(case when ends then -1 - top else head end)
    from w
    where gets_token or ends
    group by queue
  ),
  noted as (
    update @.stream s set
      blocked = w.blocked, due = w.due, mixed = w.mixed, has_token = w.has_token, at = w.at, top = w.top
    from w
    where s.n = w.n
      and s.n = any(array(select n from w where not empty))
      and (s.blocked, s.due, s.mixed, s.has_token, s.at, s.top)
        is distinct from (w.blocked, w.due, w.mixed, w.has_token, w.at, w.top)
  )
select distinct name from w where passer is not null or head is not null and due <= :now::bigint
