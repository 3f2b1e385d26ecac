-- Part: whether the lease p ended, or its owner is dead.
-- in: now — the time
-- in: dead — numbers of owners that are dead
p.until > 0 and (p.until <= :now or p.owner = any(:dead))
