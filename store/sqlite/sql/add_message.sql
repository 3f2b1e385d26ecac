-- Adds a message.
-- in: pos, id, own, type, key, stream, dedupe, priority, body, hash, headers, origin — columns
-- in: enqueued, expires, texts — columns
insert into message (pos, id, own, type, key, stream, dedupe, priority, body, hash, headers,
  origin, enqueued, expires, texts)
values (:pos, :id, :own, :type, :key, :stream, :dedupe, :priority, :body, :hash, :headers,
  :origin, :enqueued, :expires, :texts)
