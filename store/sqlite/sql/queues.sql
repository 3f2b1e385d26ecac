-- Part: begins the list of queues.
-- whole: … true order by name
-- out: n, name, settings, cursor, last, fresh, succeeded, discarded, canceled, dead, asked
select n, name, settings, cursor, last, fresh, succeeded, discarded, canceled, dead, asked
from queue
where
