-- Reads the newest audit entry of a queue, or the anchor that stands for pruned ones. The newest
-- comes last.
-- in: queue — its number
-- out: number, hash
select number, hash
from (
  select number, hash from anchor where queue = :queue
  union all
  select * from (
    select number, hash from audit where queue = +:queue order by number desc limit 1))
order by number
