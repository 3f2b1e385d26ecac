-- Locks the ends of audits, as the last thing before a commit.
-- in: queues — numbers of the queues
-- locks: chain, by queue
-- out: queue, name, number, hash
select c.queue, q.name, c.number, c.hash
from @.chain c
join @.queue q on q.n = c.queue
where c.queue = any(:queues)
order by c.queue
for update of c
