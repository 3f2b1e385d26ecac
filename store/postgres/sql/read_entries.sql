-- Reads entries of audits, each with the hash of the one before it.
-- fill: where — which entries a of queues q, as a condition; its arguments are those of this statement
-- locks: none
-- out: name, number, at, actor, event, subject, reason, hash, before, operation
select
  q.name, a.number, a.at, a.actor, a.event, a.subject, a.reason, a.hash,
  coalesce(
    a.before,
    (
      select substr(b.hashes, octet_length(b.hashes) - 31)
      from @.audit b
      where b.queue = a.queue and b.number = a.number - 1
    ),
    (select c.gone_hash from @.chain c where c.queue = a.queue and c.gone_number = a.number - 1),
    ''
  ),
  a.operation
from @.entry a
join @.queue q on q.n = a.queue
where {where}
