-- Part: whether the owner of the lease p was told to stop.
exists (select from @.owner o where o.n = p.owner and o.stopping)
