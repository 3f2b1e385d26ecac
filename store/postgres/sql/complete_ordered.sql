-- Completes messages of the ordered path that are members of one batch. The next message of each
-- stream gets a token. Streams with rows or letters are left out: their heads are recomputed.
--
-- Streams are not written, but for about one of 64: a search for the first message then steps
-- over few that have ended.
-- in: batch — number of the batch, which is locked
-- in: streams — of the messages, which are locked
-- in: positions — of the messages, in the same order
-- in: clock — the time that a test set, or null
-- locks: none
-- out: done, null if all were completed; more, whether a stream has a next message
with
  clock as materialized (select coalesce(:clock::bigint, {{clock}}) as now),
  b as materialized (
    select b.*, clock.now from @.batch b, clock where b.n = :batch and b.until > clock.now
  ),
  own as materialized (
    select s.*, u.pos, b.queue, b.now, b.claimed, f.pos as next
    from b
    cross join unnest(:streams::bigint[], :positions::bigint[]) u (n, pos)
    cross join lateral (
      select s.ctid as row, s.n from @.stream s where s.n = u.n and not s.mixed limit 1
    ) s
    left join lateral (
      select m.pos from @.message m where m.ordered_stream = s.n and m.pos > u.pos order by m.pos limit 1
    ) f on true
    where (b.members = cardinality(:positions::bigint[]) or u.pos in (select unnest(positions) from b))
      and (b.remains = b.members or (select p.pos from @.pending p where p.pos = u.pos) is null)
  ),
  done as (
    insert into @.log (pos, queue, state, ended, received)
    select pos, queue, 2, now, claimed from own
    returning pos
  ),
  counted as materialized (select count(*) as n from done),
  gone as (delete from @.batch x using b, counted c where x.n = :batch and b.remains <= c.n),
  kept as (
    update @.batch x set remains = b.remains - c.n
    from b, counted c
    where x.n = :batch and b.remains > c.n and c.n > 0
  ),
  summed as (
    insert into @.counter (queue, state, reason, n)
    select b.queue, 2, '', c.n from b, counted c where c.n > 0
  ),
  has_token as (
    insert into @.token (queue, streams, positions)
    select queue, array_agg(n), array_agg(coalesce(next, -1 - pos)) from own group by queue
  ),
  noted as (
    update @.stream s set at = own.pos from own where s.ctid = own.row and hashint8(own.pos) & 63 = 0
  )
select
  case when counted.n < cardinality(:positions::bigint[]) then array(select pos from done) end,
  exists (select from own where next is not null)
from counted
