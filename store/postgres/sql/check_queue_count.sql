-- Finds what breaks the rule queue-count: the counters of a queue say what has ended.
-- locks: none
-- out: subject, text
select 'queue ' || queue, 'counts ' || sum(n) || ' more than its log has, in state ' || state
from (
  select queue, state, reason, n from @.counter
  union all
  select queue, state, case state when 3 then coalesce(nullif(reason, ''), 'unknown') else '' end, -1 from @.log
  union all
  select queue, 2, '', -members from @.success_range
) c
group by queue, state, reason
having sum(n) <> 0
