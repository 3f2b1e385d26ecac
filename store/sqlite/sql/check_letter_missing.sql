-- Rule letter-missing: each dead message has a letter.
-- out: subject, text
select lower(hex(m.id)), 'is dead without a letter'
from log g
join message m on m.pos = g.pos
where g.state = 5 and not exists (select 1 from letter l where l.pos = g.pos)
