-- Rule queue-tally: discards by reason add up.
-- out: subject, text
select name, 'has ' || discarded || ' discarded, by reason they are ' || counted
from (
  select *, (
    select coalesce(sum(n), 0) from tally where queue = queue.n and what = 'discarded') as counted
  from queue)
where counted <> discarded
