-- Finds the oldest failure but the first of a message that has more failures than are kept.
-- in: pos — of the message
-- in: kept — how many are kept
-- out: ordinal
select ordinal
from failure
where pos = :pos and (select count(*) from failure where pos = :pos) > :kept
order by ordinal
limit 1 offset 1
