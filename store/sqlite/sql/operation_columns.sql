-- Part: begins a list of operations, with the columns that scanOperation reads. The last one has
-- the number of items by state, and when one changed last, as JSON.
-- whole: … where true
-- out: n, id, event, actor, reason, filter, force, created, destination, statuses, reviewed,
-- out: guarded
-- out: items
select o.n, o.id, o.event, o.actor, o.reason, o.filter, o.force, o.created, o.destination,
  o.statuses, o.reviewed, o.guarded,
  (select json_object('by', json_group_object(state, items), 'at', max(at)) from (
    select state, count(*) as items, max(at) as at from item i where i.operation = o.n group by state))
from operation o
