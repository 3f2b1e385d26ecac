-- Lists the processes that hold leases, with how many.
-- out: n, name, started, leases
select o.n, o.name, o.started,
  (select count(*) from pending p where p.state = 1 and p.owner = o.n)
  + (select coalesce(sum(left), 0) from batch b where b.owner = o.n)
from owner o
order by o.n
