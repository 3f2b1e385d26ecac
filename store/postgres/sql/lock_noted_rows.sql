-- Locks rows without a stream whose leases are over and of which progress was noted.
-- in: now — the time
-- in: dead — numbers of owners that are dead
-- locks: pending, by position (skip locked)
-- out: id, succeeded
select m.id, s.succeeded
from @.pending p
{{noted}}
cross join lateral (select m.id from @.message m where m.pos = p.pos offset 0) m
where {{lease_is_over}} and p.stream is null
order by p.pos
for update of p skip locked
