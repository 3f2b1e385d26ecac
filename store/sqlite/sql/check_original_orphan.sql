-- Rule original-orphan: each original has its letter.
-- out: subject, text
select printf('position %d', o.pos), 'was edited and has no letter'
from original o
where not exists (select 1 from letter l where l.pos = o.pos)
