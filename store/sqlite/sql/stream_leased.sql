-- Reads the leased message of a stream.
-- in: stream — its number
-- out: pos, rank, due, state
select pos, rank, due, state
from pending indexed by pending_open
where stream = :stream and stream is not null and state <> 6 and state = 1
