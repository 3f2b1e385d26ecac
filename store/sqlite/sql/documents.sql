-- Part: begins a list of documents.
-- whole: … limit 1
-- out: space, key, value, label, due, expires, revision, owner, until, at, by
select space, key, value, label, due, expires, revision, owner, until, at, by
from document
