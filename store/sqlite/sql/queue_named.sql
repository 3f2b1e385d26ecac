-- Reads a queue.
-- in: name — its name
-- out: queue_columns
select {{queue_columns}} from queue where name = :name
