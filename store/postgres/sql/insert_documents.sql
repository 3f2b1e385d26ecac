-- Adds documents. One that another call made meanwhile is left as it is and not answered.
-- in: spaces, keys, values, labels, dues, expiries, owners, ends — columns of the documents
-- in: at, by — of the change
-- locks: document
-- out: space, key, revision
insert into @.document (space, key, value, label, due, expires, owner, until, at, by)
select u.space, u.key, u.value, u.label, u.due, u.expires, u.owner, u.until, :at::bigint, :by::text
from unnest(:spaces::text[], :keys::text[], :values::text[], :labels::text[], :dues::bigint[],
  :expiries::bigint[], :owners::text[], :ends::bigint[]) u (space, key, value, label, due, expires, owner, until)
order by 1, 2
on conflict (space, key) do nothing
returning space, key, revision
