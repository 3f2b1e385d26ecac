-- Reads 32 messages that were claimed.
-- out: message_columns
select {{message_columns}} from message m where m.pos in {{positions}}
