-- Reads the message that holds a dedupe key.
-- in: queue, key — the key
-- out: id, hash, pos, key, stream, origin
select m.id, m.hash, m.pos, m.key, m.stream, m.origin
from dedupe d
join message m on m.pos = d.pos
where d.queue = :queue and d.key = :key
