-- Part: the columns of message m that a delivery shows.
m.pos, m.id, m.type, m.priority, m.body, m.hash, m.enqueued, m.expires, m.key, m.stream, m.dedupe,
m.headers, m.origin
