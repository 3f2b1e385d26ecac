-- Counts for each queue the letters that wait for a decision, and those that died after a moment.
-- It counts single letters only for the hour that contains the moment.
-- in: hour — of the moment
-- in: since — the moment
-- in: end — of the hour
-- out: queue, waiting, late
select queue, sum(waiting), sum(late)
from (
  select queue, letters as waiting, 0 as late
  from facet
  where status in ('open', 'review', 'quarantined')
  union all
  select queue, 0,
    coalesce((select sum(n) from deaths where facet = f.n and hour > :hour), 0)
    + (select count(*) from letter where facet = f.n and died > :since and died < :end)
  from facet f)
group by queue
