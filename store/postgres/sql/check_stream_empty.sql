-- Finds what breaks the rule stream-empty: only queues with an order have streams.
-- locks: none
-- out: subject, text
select s.name, 'is of a queue without order'
from @.stream s
join @.queue q on q.n = s.queue
where coalesce(q.settings->>'order', 'none') not in ('strict', 'relaxed')
