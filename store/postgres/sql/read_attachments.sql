-- Reads the files attached to failures of messages.
-- in: positions — of the messages
-- locks: none
-- out: pos, failure, name, data, truncated
select pos, failure, name, data, truncated
from @.attachment
where pos = any(:positions)
order by pos, failure, ordinal
