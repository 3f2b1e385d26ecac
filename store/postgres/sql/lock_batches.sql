-- Locks batches.
-- in: batches — numbers of the batches
-- locks: batch, by number
-- out: n, remains, queue, owner, claimed, until
select n, remains, queue, owner, claimed, until
from @.batch
where n = any(:batches::bigint[])
order by n
for update
