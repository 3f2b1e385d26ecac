-- Reads in how many nanoseconds each queue has something to claim, if it has, and without a name
-- when the next lease ends. It looks where claims look, and at the first entry of each index.
-- in: queues — names of the queues
-- in: clock — the time that a test set, or null
-- in: since — as for claim_look
-- locks: none
-- out: name, nanoseconds
with c as materialized (
  select now, case when :since::bigint <= now then :since::bigint else 0 end as since
  from (select coalesce(:clock::bigint, {{clock}}) as now offset 0) x
)
select q.name, first.due - c.now
from c, @.queue q
cross join lateral (select * from @.cursor where queue = q.n order by moves desc limit 1) at
cross join lateral (
  select min(due) as due
  from (
    -- rows that wait
    select f.due
    from generate_series(-4, 4) as pr (priority)
    cross join lateral (
      (
        select p.due
        from @.pending p
        where p.queue = q.n
          and p.state = 0
          and p.crashes = 0
          and p.stream is null
          and p.priority = pr.priority::smallint
        order by p.due
        limit 1
      )
      union all
      (
        select p.due
        from @.pending p
        where p.queue = q.n
          and p.state = 0
          and p.crashes = 0
          and p.stream is not null
          and p.priority = pr.priority::smallint
        order by p.due
        limit 1
      )
    ) f
    union all
    -- suspects
    (
      select p.due
      from @.pending p
      where p.queue = q.n and p.state = 0 and p.crashes > 0
      order by p.due
      limit 1
    )
    union all
    -- tokens that a claim has read, and those that none has
    (
      select r.due
      from @.ready r
      where q.strict and r.queue = q.n and r.due >= at.low
      order by r.due
      limit 1
    )
    union all
    (
      select 0
      where q.strict
        and exists (
          select from @.token t where t.queue = q.n and (t.tx >= at.tx or t.tx = any(at.late))
        )
    )
    union all
    -- messages that no range has reached
    (
      select 0
      where coalesce(q.settings ->> 'order', 'none') in ('', 'none')
        and (
          exists (
            select
            from @.message m
            where m.queue = q.n and m.by_range and (m.tx, m.pos) > (at.tx, at.pos)
          )
          or exists (
            select
            from unnest(at.late, at.done) l (x, done)
            where pg_visible_in_snapshot(l.x, pg_current_snapshot())
              and exists (
                select
                from @.message m
                where m.queue = q.n and m.by_range and m.tx = l.x and m.pos > l.done
              )
          )
        )
    )
  ) x
) first
where q.name = any(:queues) and not q.paused and first.due is not null
union all
select null, min(until) - c.now
from c
cross join lateral (
  (select until from @.pending where until > c.since and until > 0 order by until limit 1)
  union all
  (select until from @.batch where until > c.since order by until limit 1)
  union all
  (select 0 where exists (select from @.owner o where {{owner_is_dead}}))
) x
group by c.now
