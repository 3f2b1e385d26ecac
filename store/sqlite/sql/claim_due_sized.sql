-- Reads what claim_due reads, with the size of each body.
-- in: queue, priority, now — which rows
-- out: pending_columns, body_size
select {{pending_columns}}, {{body_size}}
from pending
where queue = +:queue and priority = +:priority and due <= +:now and state = 0 and crashes = 0
order by due, pos
