-- Reads what a claim has to know first: the time, whether the owner is on the list, whether
-- leases have to be ended, and whether suspects wait in the queue.
-- in: owner — number of the process in the table owner
-- in: clock — the time that a test set, or null
-- in: since — until then no lease was over; 0 looks at all of them
-- in: queue — name of the queue
-- locks: none
-- out: now, known, over, suspects
select
  c.now,
  exists (select from @.owner where n = :owner and not gone),
  {{leases_over}},
  exists (
    select
    from @.queue q
    join @.pending p on p.queue = q.n
    where q.name = :queue and p.state = 0 and p.crashes > 0 and p.due <= c.now
  )
from (
  select now, case when :since::bigint <= now then :since::bigint else 0 end as since
  from (select coalesce(:clock::bigint, {{clock}}) as now offset 0) x
  offset 0
) c
