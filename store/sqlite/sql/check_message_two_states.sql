-- Rule message-two-states: a message that waits has not ended.
-- out: subject, text
select lower(hex(m.id)), 'waits and has ended'
from pending p
join log g on g.pos = p.pos
left join message m on m.pos = p.pos
