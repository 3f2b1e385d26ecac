-- Reads the messages of the batches that a claim leased by range. The batches are sorted before
-- their messages are found: a sort of the messages by batch would mix up those of each.
-- in: before — the numbers of the batches begin after this
-- in: last — and end here
-- locks: none
-- out: tx, pos, id, type, body, hash, enqueued, expires, key, stream, headers, origin
select
  m.tx, m.pos, m.id, m.type, m.body, m.hash, m.enqueued, m.expires, m.key, m.stream, m.headers, m.origin
from (select * from @.batch where n between :before::bigint + 1 and :last order by n) b
cross join lateral (
  select *
  from @.message m
  where m.queue = b.queue and m.by_range and (m.tx, m.pos) > (b.after_tx, b.after)
  order by m.tx, m.pos
  limit b.members
) m
