-- Locks the streams of members of batches of the ordered path of which progress was noted.
-- in: batches — numbers of the batches, which are locked
-- locks: stream, by queue and name (skip locked)
-- out: id, succeeded
select p.id, s.succeeded
from (select *, 1 as number from @.member) p
{{noted}}
cross join lateral (select * from @.stream o where o.n = p.stream offset 0) o
where p.batch = any(:batches)
order by o.queue, o.name
for no key update of o skip locked
