-- Tells when the first lease ends, for health reports.
-- out: until
select min(until)
from (
  select until from pending where state = 1
  union all
  select until from batch)
