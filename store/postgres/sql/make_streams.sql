-- Makes the streams that do not exist yet.
-- fill: streams — a query for queues and names; its arguments are those of this statement
-- locks: none
-- out: none
insert into @.stream (queue, name)
select distinct *
from ({streams}) u (queue, name)
where (select s.n from @.stream s where s.queue + 0 = u.queue and s.name = u.name) is null
order by 1, 2
on conflict do nothing
