-- Makes queues that do not exist.
-- in: names — of the queues
-- in: age — nanoseconds that one priority is worth
-- in: lease — nanoseconds
-- locks: none
-- out: queue, of each that was made
insert into @.queue (name, age, lease)
select name, :age, :lease
from unnest(:names::text[]) name
order by name
on conflict do nothing
returning n
