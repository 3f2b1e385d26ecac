-- Part: joins what was noted of the lease of p, a row of pending or a member with its number. The
-- offset keeps p first: what was noted is looked up for each, and not the other way around.
-- whole: select s.succeeded from @.pending p …
cross join lateral (
  select s.succeeded
  from @.progress s
  where s.pos = p.pos and s.number = p.number and s.owner = p.owner
  offset 0
) s
