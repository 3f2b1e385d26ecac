-- Part: the positions of those of the newest messages that are in some queues. No index has all
-- messages of a queue.
-- fill: names — a condition on queue q
-- fill: limit — how many at most
with chosen as (select q.n from @.queue q where {names})
select m.pos
from (select pos, queue from @.message order by pos desc limit 20 * {limit}) m
where m.queue in (select n from chosen)
limit {limit}
