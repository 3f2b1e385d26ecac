-- Locks rows in streams whose leases are over and of which progress was noted.
-- in: now — the time
-- in: dead — numbers of owners that are dead
-- locks: pending and stream together, by position (skip locked)
-- out: id, succeeded
select m.id, s.succeeded
from @.pending p
{{noted}}
cross join lateral (select m.id from @.message m where m.pos = p.pos offset 0) m
cross join lateral (select o.n from @.stream o where o.n = p.stream offset 0) o
where {{lease_is_over}}
order by p.pos
for no key update of p, o skip locked
