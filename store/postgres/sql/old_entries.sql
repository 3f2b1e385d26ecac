-- Reads the oldest rows of an audit, but never the newest one.
-- in: queue — number of the queue
-- in: skip — how many of these were met before
-- in: max — how many at most
-- locks: none
-- out: number, at, hash of the last entry, how many entries
select number, at, substr(hashes, octet_length(hashes) - 31), cardinality(subjects)
from @.audit a
where queue = :queue and number < (select number from @.chain c where c.queue = :queue)
order by number
offset :skip
limit :max
