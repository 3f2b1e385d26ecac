-- Reads the first message of a relaxed stream.
-- in: stream — its number
-- out: pos, rank, due, state
select pos, rank, due, state
from pending indexed by pending_order
where stream = +:stream
order by due, rank
limit 1
