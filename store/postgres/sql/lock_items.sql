-- Locks and reads the items of operations about letters.
-- in: ids — IDs of the letters
-- in: operations — IDs of the operations
-- locks: item, by operation and ordinal
-- out: operation, letter, state, revision that was planned or 0
select o.id, l.id, i.state, case when o.guarded then i.revision else 0 end
from @.item i
join @.operation o on o.n = i.operation
join @.letter l on l.pos = i.letter
where o.id = any(:operations) and i.letter = any(array({{letters_with}}))
order by i.operation, i.ordinal
for update of i
