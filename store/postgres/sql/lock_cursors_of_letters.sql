-- Locks the cursors of the queues of letters.
-- in: ids — IDs of the letters
-- locks: cursor, by queue
-- out: queue
select queue
from @.cursor
where queue in (select queue from @.letter where pos = any(array({{letters_with}})))
order by queue
for update
