-- Locks batches that are over and of which progress was noted.
-- in: now — the time
-- in: dead — numbers of owners that are dead
-- locks: batch, by number (skip locked)
-- out: n, remains, queue, owner, claimed, until
select n, remains, queue, owner, claimed, until
from @.batch p
where {{lease_is_over}} and exists (select from @.progress s where s.batch = p.n and s.batch > 0 offset 0)
order by n
for update skip locked
