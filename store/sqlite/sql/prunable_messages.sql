-- Lists ended messages in the order of their positions, and tells which of them may be pruned.
-- in: cutoff — those that ended later are kept
-- in: dead — state of messages that their letters keep
-- in: after, last — positions between which to look
-- in: limit — how many at most
-- out: pos, prunable
select g.pos,
  g.ended <= :cutoff and g.state <> :dead
  and not exists (select 1 from letter l where l.pos = g.pos)
from log g
where g.pos > :after and g.pos <= :last
order by g.pos
limit :limit
