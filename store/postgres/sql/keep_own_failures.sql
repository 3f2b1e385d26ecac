-- Moves the failures that letters have of their own to the table failure: newer ones come.
-- in: positions — of the letters, which are locked
-- locks: none
-- out: none
insert into @.failure (pos, ordinal, queue, at, failed, class, reason, decision, text, low, doc)
select pos, ordinal, queue, at, last_failed, class, reason, decision, text, text_low, doc
from @.letter
where pos = any(:positions) and doc is not null
