-- Reads members of batches of which progress was noted.
-- in: batches — numbers of the batches, which are locked
-- locks: none
-- out: id, succeeded
select p.id, s.succeeded
from @.member p
join @.progress s on s.pos = p.pos and s.number = 1 and s.owner = p.owner
where p.batch = any(:batches) and p.stream is null
order by p.pos
