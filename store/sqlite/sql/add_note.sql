-- Adds a note to a letter.
-- in: letter — position of its message
-- in: at, by, text, texts — columns
insert into note (letter, ordinal, at, by, text, texts)
select :letter, count(*), :at, :by, :text, :texts from note where letter = :letter
