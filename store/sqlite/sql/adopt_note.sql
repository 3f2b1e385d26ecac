-- Adds a note of an adopted letter.
-- in: ordinal, at, by, text, texts — columns
-- in: letter — ID of the letter
insert into note (letter, ordinal, at, by, text, texts)
select pos, :ordinal, :at, :by, :text, :texts from letter where id = :letter
