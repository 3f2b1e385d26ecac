-- Reads messages of all priorities that a worker has to judge, since their holder vanished.
-- in: queue, now — which rows
-- out: pending_columns, body_size
select {{pending_columns}}, {{body_size}}
from pending
where queue = +:queue and due <= +:now and state = 0 and abandoned is not null
order by due, pos
