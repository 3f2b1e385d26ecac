-- Adds a note to a letter.
-- in: pos — of the letter, which is locked
-- in: now — the time
-- in: by — who wrote it
-- in: text — what it says
-- locks: none
-- out: none
insert into @.note (letter, ordinal, at, by, text)
select
  :pos, coalesce((select max(ordinal) + 1 from @.note where letter = :pos), 0), :now, :by, :text
