-- Reads what a list of streams shows of the head of a stream.
-- in: pos — of the head
-- out: id, attempts, failure, owner
select c.id, c.attempts,
  coalesce((select text from failure f where f.pos = c.pos order by ordinal desc limit 1), ''),
  coalesce((select name from owner o where o.n = c.owner), '')
from current c
where c.pos = +:pos
