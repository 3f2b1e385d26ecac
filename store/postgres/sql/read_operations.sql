-- Reads operations, with how many of their items are in which state.
-- fill: where — which operations o, as a condition; its arguments are those of this statement
-- locks: none
-- out: n, id, event, actor, reason, filter, force, created, destination, statuses, reviewed, guarded,
-- out: items by state, and when one changed last, as JSON
select
  o.n, o.id, o.event, o.actor, o.reason, o.filter, o.force, o.created, o.destination, o.statuses,
  o.reviewed, o.guarded,
  (
    select json_build_object('by', json_object_agg(state, items), 'at', coalesce(max(at), 0))::text
    from (select state, count(*) as items, max(at) as at from @.item i where i.operation = o.n group by state) c
  )
from @.operation o
where {where}
