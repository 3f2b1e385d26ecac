-- Gives the items by which redrives moved letters last the letters' new groups.
-- in: letters — their positions
-- in: operations — IDs of the redrives, one for each letter
-- in: was — the fingerprints that the letters had
-- in: fingerprints — the new ones
-- locks: item
-- out: none
update @.item i
set fingerprint = u.fingerprint
from
  unnest(:letters::bigint[], :operations::uuid[], :was::text[], :fingerprints::text[]) u (letter, operation, was, fingerprint)
join @.operation o on o.id = u.operation
where i.operation = o.n and i.letter = u.letter and i.fingerprint = u.was
