-- Names the streams that messages leave, and those that they join in another queue.
-- in: ids — IDs of the messages
-- in: queue — number of the other queue
-- in: ordered — whether it has an order
-- locks: none
-- out: queue, name
select s.queue, s.name
from @.stream s
where s.n = any(array(
  select stream
  from @.pending
  where pos = any(array({{messages_with}})) and stream is not null
  union
  select ordered_stream
  from @.message
  where pos = any(array({{messages_with}})) and ordered_stream is not null
))
union
select :queue::int, stream
from @.message
where :ordered and pos = any(array({{messages_with}})) and stream is not null
