-- Tells when the first blocked message of a queue was due, 0 if there is none.
-- in: queue — its number
-- in: now — the time
-- out: due
select coalesce(min(due), 0)
from (
  select min(due) as due
  from pending indexed by pending_behind
  where queue = +:queue and state = 6
  union all
  select min(due)
  from pending indexed by pending_passer
  where queue = +:queue and state = 0 and due <= +:now and {{overtakes}})
