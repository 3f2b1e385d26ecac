-- Finds what breaks the rule message-id: an ID that says a position says that of its message, and is unique.
-- locks: none
-- out: subject, text
select m.id::text, 'has an ID that says another position'
from @.message m
where m.numbered and @.pos_of(m.id) <> m.pos
union all
select m.id::text, 'has the ID of another'
from @.message m
join @.message o on o.pos = @.pos_of(m.id) and o.id = m.id
where not m.numbered and o.pos <> m.pos
