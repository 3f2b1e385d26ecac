-- Reads the letter of a message.
-- in: pos — of the message
-- out: letter_facts
select {{letter_facts}} from letter where pos = :pos
