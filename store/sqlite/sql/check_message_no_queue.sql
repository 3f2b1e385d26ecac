-- Rule message-no-queue: each message belongs to a queue.
-- out: subject, text
select lower(hex(m.id)), 'belongs to no queue'
from message m
where not exists (select 1 from queue q where q.n = m.pos >> 40)
