-- Adds a message whose ID the store has made, without an origin.
-- in: pos, id, own, type, key, stream, dedupe, priority, body, hash, headers, enqueued — columns
-- in: expires, texts — columns
insert into message (pos, id, own, type, key, stream, dedupe, priority, body, hash, headers,
  enqueued, expires, texts)
values (:pos, :id, :own, :type, :key, :stream, :dedupe, :priority, :body, :hash, :headers,
  :enqueued, :expires, :texts)
