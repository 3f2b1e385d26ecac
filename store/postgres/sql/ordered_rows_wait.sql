-- Reads whether rows of pending wait in a queue, and the time.
-- in: queue — number of the queue
-- in: clock — the time that a test set, or null
-- locks: none
-- out: rows, now
select {{rows_wait}}, coalesce(:clock::bigint, {{clock}})
