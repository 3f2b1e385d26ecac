-- Reads the rows of one priority that are due and are no suspects, ordered by due time. Claims use
-- it when one call can carry the bodies of all rows.
-- in: queue, priority, now — which rows
-- out: pending_columns, size
select {{pending_columns}}, 0
from pending
where queue = +:queue and priority = +:priority and due <= +:now and state = 0 and crashes = 0
order by due, pos
