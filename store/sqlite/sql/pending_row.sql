-- Reads the row of a message.
-- in: pos — of the message
-- out: pending_columns
select {{pending_columns}} from pending where pos = :pos
