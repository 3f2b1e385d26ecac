-- Makes the cursors of queues that have none.
-- in: names — of the queues
-- locks: none
-- out: none
insert into @.cursor (queue)
select n
from @.queue q
where name = any(:names) and not exists (select from @.cursor c where c.queue = q.n)
order by n
on conflict do nothing
