-- Adds a message. It changes nothing if there is one with that ID.
-- in: pos, id, own, type, key, stream, dedupe, priority, body, hash, headers, origin — columns
-- in: enqueued, expires, texts — columns
insert into message (pos, id, own, type, key, stream, dedupe, priority, body, hash, headers,
  origin, enqueued, expires, texts)
values (:pos, :id, :own, :type, :key, :stream, :dedupe, :priority, :body, :hash, :headers,
  :origin, :enqueued, :expires, :texts)
on conflict (id) do nothing
