-- Rule document-value: the value of a document is JSON, and a holder has an end of its lease.
-- out: subject, text
select space || '/' || key,
  iif(json_valid(value), 'has a lease without an owner or without an end', 'has a value that is no JSON')
from document
where not json_valid(value) or (owner = '') <> (until = 0)
