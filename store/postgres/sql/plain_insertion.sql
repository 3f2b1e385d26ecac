-- Part: inserts messages, one of each index of the arrays. They are enqueued at the given time, or
-- now where that is 0.
-- in: ids — of the messages
-- in: queues — their numbers
-- in: types — of the messages
-- in: keys — or empty
-- in: streams — or empty
-- in: bodies — of the messages
-- in: hashes — of the bodies
-- in: headers — as JSON, or empty
-- in: origins — as JSON, or empty
-- in: enqueued — when, or 0 for now
-- in: expires — when, or 0
insert into @.message (id, queue, type, key, stream, body, hash, headers, origin, enqueued, expires)
select
  id, queue, type, nullif(key, ''), nullif(stream, ''), body, hash, nullif(headers, ''), nullif(origin, ''),
  case enqueued when 0 then (select {{clock}}) else enqueued end, expires
from unnest(
  :ids::uuid[], :queues::int[], :types::text[], :keys::text[], :streams::text[], :bodies::bytea[],
  :hashes::bytea[], :headers::text[], :origins::text[], :enqueued::bigint[], :expires::bigint[]
) as u (id, queue, type, key, stream, body, hash, headers, origin, enqueued, expires)
