-- Counts the letters that an operation moved, by what became of them.
-- in: operation — its ID
-- locks: none
-- out: status, whether the fingerprint is that of the plan, count
select l.status, coalesce(l.fingerprint = i.fingerprint, false), count(*)
from @.letter l
left join @.item i
  on i.operation = (select n from @.operation where id = :operation) and i.letter = l.pos
where l.operation = :operation
group by 1, 2
