-- Reads the first message of a strict stream.
-- in: stream — its number
-- out: pos, rank, due, state
select pos, rank, due, state
from pending indexed by pending_stream
where stream = +:stream
order by rank
limit 1
