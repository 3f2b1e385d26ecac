-- Reads the first messages beyond the cursor of a queue that ranges hand out.
-- in: cursor, last — positions between which to look
-- in: limit — how many at most
-- out: pos, enqueued, size
select pos, enqueued, length(body)
from message
where pos > +:cursor and pos <= +:last and own = 0
order by pos
limit :limit + 0
