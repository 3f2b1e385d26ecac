-- Reads the leased rows whose lease is over.
-- in: now — the time
-- out: pending_columns
select {{pending_columns}}
from pending indexed by pending_lease
where state = 1 and until <= :now
