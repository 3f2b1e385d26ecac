-- Names the dedupe keys of messages in their queue and in another one.
-- in: ids — IDs of the messages
-- in: queue — number of the other queue
-- locks: none
-- out: queue, key
select queue, dedupe
from @.message
where pos = any(array({{messages_with}})) and dedupe is not null
union
select :queue::int, dedupe
from @.message
where pos = any(array({{messages_with}})) and dedupe is not null
