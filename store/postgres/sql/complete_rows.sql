-- Completes messages that have rows, in their first generation, without a stream and steps.
-- in: positions — of the messages
-- in: clock — the time that a test set, or null
-- in: number — of their leases
-- locks: pending
-- out: pos
with
  gone as (
    delete from @.pending p
    where p.pos = any(:positions)
      and p.state = 1
      and p.number = :number
      and p.generation = 1
      and p.stream is null
      and p.steps is null
      and p.until > coalesce(:clock::bigint, {{clock}})
    returning p.*
  ),
  counted as (
    insert into @.counter (queue, state, reason, n)
    select queue, 2, '', count(*) from gone group by queue
  )
insert into @.log (
  pos, queue, state, ended, received, attempts, deliveries, crashes, redrives, number, gap, reason
)
select
  pos, queue, 2, coalesce(:clock::bigint, {{clock}}), received, nullif(attempts, 1),
  nullif(deliveries, 1), nullif(crashes, 0), nullif(redrives, 0), nullif(number, 1),
  nullif(gap, false), reason
from gone
returning pos
