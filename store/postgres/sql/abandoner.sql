-- Part: the name of the owner that let the lease p end.
coalesce((select nullif(o.name, '') from @.owner o where o.n = p.owner), 'unknown')
