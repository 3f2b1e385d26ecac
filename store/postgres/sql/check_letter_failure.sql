-- Finds what breaks the rule letter-failure: the failure of its own that a letter has is whole, and the newest.
-- locks: none
-- out: subject, text
select l.id::text, 'has a failure of its own that is not the newest, or not whole'
from @.letter l
where (l.doc is null) <> (l.ordinal is null)
  or (l.doc is null) <> (l.at is null)
  or (l.doc is null) <> (l.decision is null)
  or l.doc is not null and exists (select from @.failure f where f.pos = l.pos and f.ordinal >= l.ordinal)
