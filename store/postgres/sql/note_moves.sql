-- Notes that messages are in another queue. Ranges skip them from now on.
-- in: positions — of the messages
-- in: queues — numbers of their queues
-- locks: none
-- out: none
update @.message m set queue = u.queue, by_range = false
from unnest(:positions::bigint[], :queues::int[]) u (pos, queue)
where m.pos = u.pos
