-- Reads the failures of messages, oldest first.
-- in: positions — of the messages
-- locks: none
-- out: pos, ordinal, class, reason, decision, text, doc, at
select pos, ordinal, class, reason, decision, text, doc, at
from @.history
where pos = any(:positions)
order by pos, ordinal
