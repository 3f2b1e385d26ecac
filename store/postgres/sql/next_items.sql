-- Reads the next letters that an operation waits for.
-- in: operation — its ID
-- in: max — how many at most
-- locks: none
-- out: letter
select l.id
from @.item i
join @.letter l on l.pos = i.letter
where i.operation = (select n from @.operation where id = :operation) and i.state = 'pending'
order by i.ordinal
limit :max
