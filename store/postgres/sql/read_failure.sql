-- Reads the oldest or the newest failure of messages.
-- fill: where — which failures, as a condition; its arguments are those of this statement
-- fill: direction — nothing for the oldest, desc for the newest
-- locks: none
-- out: pos, ordinal, failed, class, reason, text
select distinct on (pos) pos, ordinal, failed, class, reason, text
from @.history
where {where}
order by pos, ordinal{direction}
