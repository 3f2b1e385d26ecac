-- Part: begins a list of operations, with the columns that scanOperation reads.
-- whole: … group by o.n
-- out: n, id, event, actor, reason, filter, force, created, destination, statuses, reviewed,
-- out: guarded
-- out: pending, done, skipped, failed
select o.n, o.id, o.event, o.actor, o.reason, o.filter, o.force, o.created, o.destination,
  o.statuses, o.reviewed, o.guarded,
  count(*) filter (where i.state = 'pending'), count(*) filter (where i.state = 'done'),
  count(*) filter (where i.state = 'skipped'), count(*) filter (where i.state = 'failed')
from operation o
left join item i on i.operation = o.n
