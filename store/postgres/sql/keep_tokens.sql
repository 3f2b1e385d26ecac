-- Keeps tokens as if a claim had read them without room for their messages.
-- locks: none; the tables are locked
-- out: none
insert into @.ready (queue, due, pos, stream)
select t.queue, m.enqueued, m.pos, t.stream
from @.valid_token t
join @.message m on m.pos = t.pos
on conflict do nothing
