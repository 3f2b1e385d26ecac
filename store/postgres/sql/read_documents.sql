-- Reads documents.
-- fill: where — which of them, perhaps in an order, and locked; its arguments are those here
-- locks: none, or document by space and key
-- out: space, key, value, label, due, expires, revision, owner, until, at, by
select space, key, value, label, due, expires, revision, owner, until, at, by
from @.document
where {where}
