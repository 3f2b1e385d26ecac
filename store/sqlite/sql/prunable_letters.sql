-- Lists letters that may be pruned, in the order of their positions.
-- in: after — position after which to look
-- in: queue — its number
-- in: cutoff — those that were resolved later are kept
-- in: limit — how many at most
-- out: pos
select pos
from letter
where pos > :after
  and facet in (select n from facet where queue = :queue and status in ('resolved', 'discarded'))
  and resolved <= :cutoff
order by pos
limit :limit
