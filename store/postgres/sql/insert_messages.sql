-- Inserts messages that have their positions.
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
-- in: positions — of the messages
-- in: by_range — whether claims by range take them
-- in: ordered_streams — streams on whose ordered paths they are, or 0
-- in: numbered — whether the ID says the position
-- in: dedupes — dedupe keys, or empty
-- in: priorities — of the messages
-- locks: none
-- out: none
insert into @.message (
  id, queue, type, key, stream, body, hash, headers, origin, enqueued, expires,
  pos, by_range, ordered_stream, numbered, dedupe, priority
)
select
  id, queue, type, nullif(key, ''), nullif(stream, ''), body, hash, nullif(headers, ''), nullif(origin, ''),
  case enqueued when 0 then (select {{clock}}) else enqueued end, expires,
  pos, by_range, nullif(ordered_stream, 0), numbered, nullif(dedupe, ''), priority
from unnest(
  :ids::uuid[], :queues::int[], :types::text[], :keys::text[], :streams::text[], :bodies::bytea[],
  :hashes::bytea[], :headers::text[], :origins::text[], :enqueued::bigint[], :expires::bigint[],
  :positions::bigint[], :by_range::boolean[], :ordered_streams::bigint[], :numbered::boolean[], :dedupes::text[],
  :priorities::smallint[]
) as u (
  id, queue, type, key, stream, body, hash, headers, origin, enqueued, expires,
  pos, by_range, ordered_stream, numbered, dedupe, priority
)
