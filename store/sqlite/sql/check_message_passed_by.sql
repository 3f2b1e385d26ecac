-- Rule message-passed-by: a new message has no row of pending and has not ended.
-- out: subject, text
select lower(hex(m.id)), 'has a row of its own or has ended, but a range will hand it out too'
from message m
join queue q on q.n = m.pos >> 40
where m.own = 0 and m.pos & 0xffffffffff > q.cursor
  and (exists (select 1 from pending p where p.pos = m.pos)
    or exists (select 1 from log g where g.pos = m.pos))
