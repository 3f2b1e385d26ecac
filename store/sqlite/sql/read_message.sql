-- Reads a message that was claimed.
-- in: pos — of the message
-- out: message_columns
select {{message_columns}} from message m where m.pos = :pos
