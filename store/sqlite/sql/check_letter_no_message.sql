-- Rule letter-no-message: each letter has its message.
-- out: subject, text
select lower(hex(l.id)), 'has no message'
from letter l
where not exists (select 1 from message m where m.pos = l.pos)
