-- Part: whether owner o has leases.
(
  exists (select from @.pending p where p.until > 0 and p.owner = o.n)
  or exists (select from @.batch b where b.owner = o.n)
)
