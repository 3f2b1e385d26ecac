-- Locks the cursor of a queue. After a crash that made the server forget moves, there is none.
-- in: queue — name of the queue
-- in: moves — how often the cursor has moved at least
-- locks: cursor
-- out: moves
select moves
from @.cursor
where queue = (select n from @.queue where name = :queue) and moves >= :moves
order by moves desc
limit 1
for update
