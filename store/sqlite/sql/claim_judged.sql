-- Reads the messages whose holder vanished and which a worker has to judge, of all priorities.
-- in: queue, now — which rows
-- out: pending_columns, body_size
select {{pending_columns}}, {{body_size}}
from pending
where queue = +:queue and due <= +:now and state = 0 and abandoned is not null
order by due, pos
