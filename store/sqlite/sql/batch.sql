-- Reads a batch.
-- in: n — its number
-- out: batch_columns
select {{batch_columns}} from batch where n = :n
