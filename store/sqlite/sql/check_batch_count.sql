-- Rule batch-count: the row of a batch counts its unsettled members.
-- out: subject, text
select printf('batch %d', b.n),
  'has ' || count(m.pos) || ' unsettled members, its row says ' || b.left
from batch b
left join message m on m.pos between b.first and b.last and m.own = 0
  and not exists (select 1 from pending p where p.pos = m.pos)
  and not exists (select 1 from log g where g.pos = m.pos)
group by b.n
having count(m.pos) <> b.left
