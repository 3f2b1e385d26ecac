-- Reads the message that holds a dedupe key.
-- in: queue, key — the key
-- out: pos, id, hash; the ID is null if there is no such message
select d.pos, m.id, m.hash
from dedupe d
left join message m on m.pos = d.pos
where d.queue = :queue and d.key = :key
