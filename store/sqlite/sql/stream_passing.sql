-- Finds the first message of a stream that may go before the head.
-- in: stream — its number
-- in: head — position of the head
-- out: pos
select pos
from pending
where stream = +:stream and may_pass = 1 and pos <> :head
order by due, rank
limit 1
