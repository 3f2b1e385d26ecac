-- Rule row-no-message: each row of pending, log and failure has its message.
-- out: subject, text
select printf('position %d', p.pos), 'waits without its message'
from pending p
where not exists (select 1 from message m where m.pos = p.pos)
union all
select printf('position %d', g.pos), 'has ended without its message'
from log g
where not exists (select 1 from message m where m.pos = g.pos)
union all
select printf('position %d', f.pos), 'has failed without its message'
from failure f
where not exists (select 1 from message m where m.pos = f.pos)
