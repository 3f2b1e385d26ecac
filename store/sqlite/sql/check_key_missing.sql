-- Rule key-missing: a message that has not ended holds its dedupe key.
-- out: subject, text
select lower(hex(c.id)), 'is on its way, but its dedupe key ' || c.dedupe || ' is not held by it'
from current c
where c.dedupe is not null and c.state in (0, 1)
  and not exists (
    select 1 from dedupe d where d.queue = c.queue and d.key = c.dedupe and d.pos = c.pos)
