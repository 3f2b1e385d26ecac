-- Rule key-missing: a message that has not ended holds its dedupe key, unless the queue was once in
-- a scope in which claims free keys (4 in widest).
-- out: subject, text
select lower(hex(c.id)), 'is on its way, but its dedupe key ' || c.dedupe || ' is not held by it'
from current c
join queue q on q.n = c.queue
where c.dedupe is not null and c.state in (0, 1)
  and not exists (
    select 1 from dedupe d where d.queue = c.queue and d.key = c.dedupe and d.pos = c.pos)
  and not (q.widest & 4 and (c.deliveries > 0 or c.received > 0 or c.redrives > 0))
