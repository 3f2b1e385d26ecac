-- Finds what breaks the rule letter-count: the counters of letters say how many there are, in each hour
-- and in all.
-- locks: none
-- out: subject, text
select
  'queue ' || queue,
  'counts ' || sum(n) || ' letters more than it has that are ' || status
    || ', of reason ' || reason || ', from ' || coalesce('hour ' || hour, 'all hours')
from (
  select queue, status, reason, facet, hour, letters as n from @.death where hour is not null
  union all
  select queue, status, reason, facet, null, letters from @.death where whole
  union all
  select queue, status, reason, facet, h.hour, -1 from @.letter l cross join lateral (values (l.hour), (null)) h (hour)
) c
group by queue, status, reason, facet, hour
having sum(n) <> 0
