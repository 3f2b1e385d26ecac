-- Reads those of 32 rows whose lease is current and which have no letter and no stream.
-- in: now — the time
-- out: pos, number, attempts, due, reason
select pos, number, attempts, due, reason
from pending
where state = 1 and until > :now and generation = 1 and stream is null and pos in {{positions}}
