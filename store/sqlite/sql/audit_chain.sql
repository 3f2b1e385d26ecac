-- Lists the audit entries of a queue in the order of its chain.
-- in: queue — its name
-- in: after — number of the last entry on the page before
-- in: limit — how many at most
-- out: audit_columns
select {{audit_columns}}
from audit a
join queue q on q.n = a.queue
where q.name = :queue and a.number > :after
order by a.number
limit :limit
