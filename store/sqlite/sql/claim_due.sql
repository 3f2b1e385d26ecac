-- Reads the rows of one priority that are due and are no suspects, in the order of their due times.
-- Claims take this statement while n messages fit into one call, however large each is.
-- in: queue, priority, now — which rows
-- out: pending_columns, size
select {{pending_columns}}, 0
from pending
where queue = +:queue and priority = +:priority and due <= +:now and state = 0 and crashes = 0
order by due, pos
