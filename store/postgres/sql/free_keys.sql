-- Takes the dedupe keys of messages away.
-- in: positions — of the messages
-- locks: dedupe, by queue and key
-- out: none
with own as materialized (
  select queue, key from @.dedupe where pos = any(:positions) order by queue, key for update
)
delete from @.dedupe d using own where d.queue = own.queue and d.key = own.key
