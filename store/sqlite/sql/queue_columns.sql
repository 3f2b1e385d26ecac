-- Part: the columns of queue in the order in which loadQueue reads them.
-- whole: select … from queue
-- out: n, name, last, cursor, paused, settings, fresh, succeeded, discarded, canceled, dead,
-- out: largest, asked
n, name, last, cursor, paused, settings, fresh, succeeded, discarded, canceled, dead, largest, asked
