-- Reads which messages have bodies that do not match their hashes.
-- in: max — how many at most
-- locks: none
-- out: id
select coalesce(m.id::text, 'position ' || o.pos)
from (
  select pos, body, hash from @.message
  union all
  select pos, body, hash from @.original
) o
left join @.message m on m.pos = o.pos
where sha256(o.body) <> o.hash
order by o.pos
limit :max
