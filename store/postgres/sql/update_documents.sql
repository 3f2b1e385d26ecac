-- Replaces documents that are locked, each with a revision that no other had.
-- in: spaces, keys, values, labels, dues, expiries, owners, ends — columns of the documents
-- in: at, by — of the change
-- locks: none
-- out: space, key, revision
update @.document d
set value = u.value, label = u.label, due = u.due, expires = u.expires, owner = u.owner, until = u.until,
  at = :at::bigint, by = :by::text, revision = default
from unnest(:spaces::text[], :keys::text[], :values::text[], :labels::text[], :dues::bigint[],
  :expiries::bigint[], :owners::text[], :ends::bigint[]) u (space, key, value, label, due, expires, owner, until)
where d.space = u.space and d.key = u.key
returning d.space, d.key, d.revision
