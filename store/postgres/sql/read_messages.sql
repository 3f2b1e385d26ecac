-- Reads messages.
-- fill: where — which messages c, as a condition; its arguments are those of this statement
-- locks: none
-- out: message_columns
select {{message_columns}} from @.current c where {where}
