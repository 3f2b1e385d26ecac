-- Locks the rows of messages that hold dedupe keys.
-- in: queues — numbers of the queues of the keys
-- in: keys — dedupe keys
-- locks: pending, by position
-- out: pos
select pos
from @.pending
where pos in (
  select pos
  from @.dedupe
  where (queue, key) in (select * from unnest(:queues::int[], :keys::text[]))
)
order by pos
for update
