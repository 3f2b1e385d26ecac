-- Reads the rows that a process has leased.
-- in: owner — number of the process
-- out: pending_columns
select {{pending_columns}}
from pending indexed by pending_lease
where state = 1 and owner = :owner
