-- Rule lease-stale: a leased row, and no other row, has an owner and an end of the lease.
-- out: subject, text
select lower(hex(m.id)), 'is queued and has the end of a lease, or is leased without one'
from pending p
left join message m on m.pos = p.pos
where (p.state = 1) = (p.until = 0) or (p.state = 1) = (p.owner = 0) or p.state not in (0, 1, 6)
