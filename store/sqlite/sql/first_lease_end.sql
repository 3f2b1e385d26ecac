-- Tells when the first lease ends, of ranges and of rows.
-- out: until
select min(until)
from (
  select min(until) as until from batch
  union all
  select min(until) from pending where state = 1)
