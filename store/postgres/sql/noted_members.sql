-- Reads members of batches of which progress was noted.
-- in: batches — numbers of the batches, which are locked
-- locks: none
-- out: id, succeeded
select p.id, s.succeeded
from (select *, 1 as number from @.member) p
{{noted}}
where p.batch = any(:batches) and p.stream is null
order by p.pos
