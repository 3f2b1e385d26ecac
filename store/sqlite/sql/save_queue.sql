-- Writes the counters of a queue.
-- in: last, cursor, fresh, largest, succeeded, discarded, canceled, dead — new values
-- in: n — number of the queue
update queue
set last = :last, cursor = :cursor, fresh = :fresh, largest = :largest, succeeded = :succeeded,
  discarded = :discarded, canceled = :canceled, dead = :dead
where n = :n
