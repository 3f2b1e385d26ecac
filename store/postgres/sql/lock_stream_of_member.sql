-- Locks the stream of a message in a batch of the ordered path.
-- in: ids — ID of the message
-- locks: stream (skip locked): the transaction of the caller may hold it
-- out: stream
select n
from @.stream
where n = any(array(
  select in_stream from @.current where pos = any(array({{messages_with}})) and location = 6
))
for no key update skip locked
