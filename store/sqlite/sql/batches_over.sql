-- Reads the batches whose lease is over.
-- in: now — the time
-- out: batch_columns
select {{batch_columns}} from batch where until <= :now
