-- Part: the columns of a message as a claim hands it out. has_more tells whether one of the last
-- five is not null: most messages have none, and reading each costs more than reading the row.
-- whole: select … from message m
-- out: pos, id, type, priority, body, hash, enqueued, expires, has_more, key, stream, dedupe,
-- out: headers, origin
m.pos, m.id, m.type, m.priority, m.body, m.hash, m.enqueued, m.expires,
coalesce(m.key, m.stream, m.dedupe, m.headers, m.origin) is not null,
m.key, m.stream, m.dedupe, m.headers, m.origin
