-- Reads the batches that a process has leased.
-- in: owner — number of the process
-- out: batch_columns
select {{batch_columns}} from batch where owner = :owner
