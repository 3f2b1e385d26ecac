-- Reads a letter.
-- in: id — of the letter
-- out: letter_facts
select {{letter_facts}} from letter where id = :id
