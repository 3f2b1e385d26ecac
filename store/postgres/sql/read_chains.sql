-- Reads all entries of all audits, to check their hashes.
-- locks: none
-- out: name, number, at, actor, event, subject, reason, hash, before, operation
select
  q.name, a.number, a.at, a.actor, a.event, a.subject, a.reason, a.hash,
  case when a.number = c.gone_number + 1 then c.gone_hash else '' end, a.operation
from @.entry a
join @.queue q on q.n = a.queue
join @.chain c on c.queue = a.queue
order by a.queue, a.last, a.number
