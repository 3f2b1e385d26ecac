-- Reads which suspects wait in a queue: messages that vanished with an owner.
-- in: queue — number of the queue
-- in: now — the time
-- locks: none
-- out: to_judge, crashes, and whether a suspect of the queue is leased
select
  p.abandoned is not null,
  p.crashes,
  exists (
    select from @.pending o where o.queue = :queue and o.until > 0 and o.state = 1 and o.crashes > 0
  )
from @.pending p
where p.queue = :queue and p.state = 0 and p.crashes > 0 and p.due <= :now and {{may_go}}
group by 1, 2
order by 1 desc, 2
