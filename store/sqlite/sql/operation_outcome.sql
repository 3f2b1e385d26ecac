-- Counts what became of the letters that an operation moved.
-- in: operation — its number
-- in: id — of the operation
-- out: status, same, letters
select l.status, coalesce(l.fingerprint = i.fingerprint, 0), count(*)
from letter l
left join item i on i.operation = :operation and i.letter = l.pos
where l.operation = :id
group by 1, 2
