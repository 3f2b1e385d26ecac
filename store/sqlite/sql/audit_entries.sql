-- Part: begins the list of audit entries of all queues.
-- whole: … true order by a.at limit 1
-- out: audit_columns, queue, name
select {{audit_columns}}, a.queue, q.name
from audit a
join queue q on q.n = a.queue
where
