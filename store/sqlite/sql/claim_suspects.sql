-- Reads the suspects of one priority that are due and have crashed a given number of times.
-- in: queue, priority, now — which rows
-- in: crashes — how often they have crashed
-- out: pending_columns, body_size
select {{pending_columns}}, {{body_size}}
from pending
where queue = +:queue and priority = +:priority and due <= +:now
  and state = 0 and crashes > 0 and crashes = :crashes and abandoned is null
order by due, pos
