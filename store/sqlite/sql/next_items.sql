-- Lists the letters that an operation will handle next.
-- in: operation — its number
-- in: limit — how many at most
-- out: id
select l.id
from item i
join letter l on l.pos = i.letter
where i.operation = :operation and i.state = 'pending'
order by i.ordinal
limit :limit
