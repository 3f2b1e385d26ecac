-- Part: begins the list of queues.
-- whole: … true order by name
-- out: n, name, settings, cursor, last, fresh, succeeded, discarded, canceled, dead
select n, name, settings, cursor, last, fresh, succeeded, discarded, canceled, dead
from queue
where
