-- Reads messages that ended a while ago and have no letters.
-- in: queue — number of the queue
-- in: before — what ended up to here
-- in: skip — how many of these were met before
-- in: max — how many at most
-- locks: none
-- out: pos, no ID
select pos, null::uuid
from @.log
where queue = :queue and state <> 5 and coalesce(redrives, 0) = 0 and ended <= :before
order by ended, pos
offset :skip
limit :max
