-- Finds what breaks the rule lease-stale: a row is leased if and only if it has an owner and an end.
-- locks: none
-- out: subject, text
select p.pos::text, 'is queued and has a lease, or is leased without one'
from @.pending p
where (p.state = 1) <> (p.owner <> 0) or (p.state = 1) <> (p.until <> 0)
