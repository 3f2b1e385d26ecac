-- Locks rows in streams whose leases are over and of which progress was noted.
-- in: now — the time
-- in: dead — numbers of owners that are dead
-- locks: pending and stream together, by position (skip locked)
-- out: id, succeeded
select m.id, s.succeeded
from @.progress s
join @.pending p on p.pos = s.pos and p.number = s.number and p.owner = s.owner
join @.message m on m.pos = p.pos
join @.stream o on o.n = p.stream
where {{lease_is_over}}
order by p.pos
for no key update of p, o skip locked
