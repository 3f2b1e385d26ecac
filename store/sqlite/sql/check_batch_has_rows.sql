-- Rule batch-has-rows: a batch whose members have rows of pending is marked.
-- out: subject, text
select printf('batch %d', b.n), 'says that no member has a row of its own, and one has'
from batch b
where b.has_rows = 0 and exists (
  select 1 from pending p
  join message m on m.pos = p.pos and m.own = 0
  where p.pos between b.first and b.last)
