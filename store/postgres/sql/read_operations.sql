-- Reads operations, with how many of their items are in which state.
-- fill: where — which operations o, as a condition; its arguments are those of this statement
-- locks: none
-- out: n, id, event, actor, reason, filter, force, created, destination, statuses, reviewed, guarded,
-- out: done, skipped, failed, pending
select
  o.n, o.id, o.event, o.actor, o.reason, o.filter, o.force, o.created, o.destination, o.statuses,
  o.reviewed, o.guarded, c.*
from @.operation o
cross join lateral (
  select
    count(*) filter (where state = 'done'), count(*) filter (where state = 'skipped'),
    count(*) filter (where state = 'failed'), count(*) filter (where state = 'pending')
  from @.item i
  where i.operation = o.n
) c
where {where}
