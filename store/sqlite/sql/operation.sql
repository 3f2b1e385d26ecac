-- Reads an operation.
-- in: n — its number
-- out: operation_columns
{{operation_columns}} where o.n = :n
