-- Finds what breaks the rule letter-id: an ID that says a position says that of its letter, and is unique.
-- locks: none
-- out: subject, text
select l.id::text, 'has an ID that says another position'
from @.letter l
where l.numbered and @.pos_of(l.id) <> l.pos
union all
select l.id::text, 'has the ID of another'
from @.letter l
join @.letter o on o.pos = @.pos_of(l.id) and o.id = l.id
where not l.numbered and o.pos <> l.pos
