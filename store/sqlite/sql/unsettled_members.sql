-- Lists the members of a batch that are not settled and have no row of their own.
-- in: first, last — range of the batch
-- out: pos
select m.pos
from message m
where m.pos between :first and :last and m.own = 0
  and not exists (select 1 from log where log.pos = m.pos)
  and not exists (select 1 from pending where pending.pos = m.pos)
