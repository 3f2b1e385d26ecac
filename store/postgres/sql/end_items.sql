-- Writes the outcomes of the items by which redrives moved letters, unless they have one.
-- in: operations — IDs of the redrives
-- in: letters — their positions
-- in: fingerprints — of the letters at their latest deaths
-- in: same — the outcomes with the fingerprint of the plan
-- in: other — the outcomes with another one
-- in: was — the states of the items without an outcome
-- in: sent — whether items may wait for their confirmation
-- in: early — whether those wait on
-- in: at — now
-- locks: item
-- out: none
update @.item i
set
  state = case when u.early and i.state = 'pending' then i.state else u.outcome end,
  early = case when u.early and i.state = 'pending' then u.outcome else i.early end,
  at = :at
from (
  select
    i.operation, i.letter, e.was, e.sent, e.early,
    case when i.fingerprint = e.fingerprint then e.same else e.other end as outcome
  from
    unnest(
      :operations::uuid[], :letters::bigint[], :fingerprints::text[], :same::text[], :other::text[],
      :was::text[], :sent::boolean[], :early::boolean[]
    ) e (operation, letter, fingerprint, same, other, was, sent, early)
  join @.operation o on o.id = e.operation and o.event = 'redrive'
  join @.item i on i.operation = o.n and i.letter = e.letter
) u
where i.operation = u.operation
  and i.letter = u.letter
  and (i.state = u.was or u.sent and i.state = 'pending')
