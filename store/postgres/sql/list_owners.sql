-- Lists processes that claim, and how many messages each has leased.
-- locks: none
-- out: name, started, alive, leases
select
  o.name, o.started, not {{owner_is_dead}},
  (select count(*) from @.pending p where p.until > 0 and p.owner = o.n)
    + (select coalesce(sum(remains), 0) from @.batch b where b.owner = o.n)
from @.owner o
order by o.n
