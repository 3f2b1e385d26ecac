-- Locks the streams of members of batches of the ordered path of which progress was noted.
-- in: batches — numbers of the batches, which are locked
-- locks: stream, by queue and name (skip locked)
-- out: id, succeeded
select p.id, s.succeeded
from @.member p
join @.progress s on s.pos = p.pos and s.number = 1 and s.owner = p.owner
join @.stream o on o.n = p.stream
where p.batch = any(:batches)
order by o.queue, o.name
for no key update of o skip locked
