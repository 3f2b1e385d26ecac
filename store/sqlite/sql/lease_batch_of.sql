-- Finds the batch whose range has a message that has no row of its own.
-- in: pos — of the message
-- out: n
select b.n
from batch b
join message m on m.pos = :pos and m.own = 0
where b.first <= :pos and b.last >= :pos
