-- Locks the queues of messages, which will be paused.
-- in: ids — IDs of the messages
-- locks: queue, by number
-- out: none
select
from @.queue
where n in (select queue from @.message where pos = any(array({{messages_with}})))
order by n
for update
