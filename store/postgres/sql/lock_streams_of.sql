-- Locks the streams of messages.
-- fill: these — which messages, as a condition on pos; its argument is that of this statement
-- locks: stream, by queue and name
-- out: stream
select n
from @.stream
where n = any(array(
  select stream from @.pending where pos{these} and stream is not null
  union
  select ordered_stream from @.message where pos{these} and ordered_stream is not null
))
order by queue, name
for no key update
