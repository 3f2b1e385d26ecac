-- Reads a queue.
-- in: n — its number
-- out: queue_columns
select {{queue_columns}} from queue where n = :n
