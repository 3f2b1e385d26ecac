-- Finds what breaks the rule letter-count: the counters of letters say how many there are.
-- locks: none
-- out: subject, text
select
  'queue ' || queue,
  'counts ' || sum(n) || ' letters more than it has that are ' || status
    || ', of reason ' || reason || ', from hour ' || hour
from (
  select queue, status, reason, facet, hour, letters as n from @.death
  union all
  select queue, status, reason, facet, hour, -1 from @.letter
) c
group by queue, status, reason, facet, hour
having sum(n) <> 0
