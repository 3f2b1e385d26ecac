-- Part: the columns of an audit entry in the order in which scanAudit reads them. before is the
-- hash of the previous entry, or of the anchor.
-- whole: select … from audit a
-- out: number, at, actor, event, subject, reason, hash, before, operation
a.number, a.at, a.actor, a.event, a.subject, a.reason, a.hash, coalesce(
(select p.hash from audit p where p.queue = a.queue and p.number = a.number - 1),
(select o.hash from anchor o where o.queue = a.queue and o.number = a.number - 1)), a.operation
