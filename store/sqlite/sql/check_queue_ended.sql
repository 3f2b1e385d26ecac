-- Rule queue-ended: the row of a queue counts the messages that have ended, also those deleted
-- since.
-- out: subject, text
with ends (state, name) as (
  values (2, 'succeeded'), (3, 'discarded'), (4, 'canceled'), (5, 'dead'))
select queue,
  'counts ' || counted || ' ' || name || ', log and tally have ' || there || ' and ' || gone
from (
  select q.name as queue, e.name,
    case e.state
      when 2 then q.succeeded when 3 then q.discarded when 4 then q.canceled else q.dead
    end as counted,
    (select count(*) from log g
      where g.pos > q.n << 40 and g.pos <= q.n << 40 | 0xffffffffff and g.state = e.state) as there,
    coalesce((select sum(t.n) from tally t
      where t.queue = q.n and t.what in ('pruned', 'purged') and t.name = e.name), 0) as gone
  from queue q, ends e)
where counted <> there + gone
