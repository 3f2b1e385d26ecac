-- Locks the cursors of queues in which messages wait without a row.
-- in: ids — IDs of the messages
-- locks: cursor, by queue
-- out: queue
select queue
from @.cursor
where queue in (
  select queue from @.current where pos = any(array({{messages_with}})) and location in (4, 5)
)
order by queue
for update
