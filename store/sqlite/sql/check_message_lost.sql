-- Rule message-lost: a message that was handed out is leased, waits or has ended.
-- out: subject, text
select lower(hex(m.id)), 'handed out, but neither leased nor waiting nor ended'
from message m
join queue q on q.n = m.pos >> 40
where (m.own = 1 or m.pos & 0xffffffffff <= q.cursor)
  and not exists (select 1 from pending p where p.pos = m.pos)
  and not exists (select 1 from log g where g.pos = m.pos)
  and (m.own = 1 or not exists (select 1 from batch b where m.pos between b.first and b.last))
