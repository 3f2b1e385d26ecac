-- Counts the messages of a queue that may pass their heads, which are due.
-- in: queue — its number
-- in: now — the time
-- out: messages
select count(*)
from pending indexed by pending_passer
where queue = +:queue and state = 0 and due <= +:now and {{overtakes}}
