-- Finds the batches whose ranges have positions in them.
-- in: positions — as JSON
-- out: n
select distinct b.n
from json_each(:positions) j
cross join batch b on b.first <= j.value and b.last >= j.value
