-- Reads the item of an operation for a letter.
-- in: operation, letter — IDs
-- out: operation, state, letter, planned, event
select o.n, i.state, i.letter, iif(o.guarded, i.revision, 0), o.event
from operation o
join item i on i.operation = o.n
where o.id = +:operation and i.letter = (select pos from letter where id = +:letter)
