-- Reads all audit entries in the order of their chains, with the anchors.
-- out: queue, number, at, actor, event, subject, reason, hash, anchor, anchor_hash, operation
select q.name, a.number, a.at, a.actor, a.event, a.subject, a.reason, a.hash,
  coalesce(o.number, 0), o.hash, a.operation
from audit a
left join queue q on q.n = a.queue
left join anchor o on o.queue = a.queue
order by a.queue, a.number
