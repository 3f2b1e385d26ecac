-- Lists how often the suspects that are due have crashed, each number once.
-- in: queue, now — which rows
-- out: crashes
select distinct crashes
from pending
where queue = +:queue and due <= +:now and state = 0 and crashes > 0 and abandoned is null
order by crashes
