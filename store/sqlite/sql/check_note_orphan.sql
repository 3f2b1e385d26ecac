-- Rule note-orphan: each note has its letter.
-- out: subject, text
select printf('letter %d', o.letter), 'has a note and is gone'
from note o
where not exists (select 1 from letter l where l.pos = o.letter)
