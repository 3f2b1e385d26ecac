-- Locks the batches that messages are in, and others.
-- in: ids — IDs of the messages
-- in: batches — numbers of other batches
-- locks: batch, by number
-- out: n, remains, queue, owner, claimed, until
select n, remains, queue, owner, claimed, until
from @.batch
where n = any(array(
  select batch from @.current where pos = any(array({{messages_with}})) and location in (3, 6)
  union
  select unnest(:batches::bigint[])
))
order by n
for update
