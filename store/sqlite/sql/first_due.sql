-- Tells when the first message of a queue is due: 1 if there are new ones, null if the queue is
-- empty. It asks the index of each priority for its first row. It also tells when a claim of the
-- queue was last noted.
-- in: queue — its name
-- out: due, asked
with p (n) as (values (-4), (-3), (-2), (-1), (0), (1), (2), (3), (4))
select iif(q.fresh > 0, 1, (
  select min(due)
  from (
    select (select min(due) from pending
            where queue = q.n and priority = p.n and state = 0 and crashes = 0) as due
    from p
    union all
    select (select min(due) from pending
            where queue = q.n and priority = p.n and state = 0 and crashes > 0)
    from p))), q.asked
from queue q
where q.name = :queue and q.paused = 0
