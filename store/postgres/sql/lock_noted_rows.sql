-- Locks rows without a stream whose leases are over and of which progress was noted.
-- in: now — the time
-- in: dead — numbers of owners that are dead
-- locks: pending, by position (skip locked)
-- out: id, succeeded
select m.id, s.succeeded
from @.progress s
join @.pending p on p.pos = s.pos and p.number = s.number and p.owner = s.owner
join @.message m on m.pos = p.pos
where {{lease_is_over}} and p.stream is null
order by p.pos
for update of p skip locked
