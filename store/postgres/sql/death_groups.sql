-- Groups letters by the rows that count them, with the newest and the oldest letter of each facet.
-- fill: key — what they are grouped by
-- fill: deaths — the rows l that count letters
-- fill: where — the filter; its arguments are those of this statement
-- fill: hour — l.hour if groups are hours, else 0
-- fill: within — whether letter x died in the interval of the filter, and in hour k.part
-- fill: examples — how many of the newest
-- locks: none
-- out: key, count on the oldest and 0 on the others, died, pos, id, signature, reason
with k as (
  select
    {key} as key, l.facet, {hour} as part, min(l.signature) as signature, min(l.reason) as reason,
    sum(letters)::bigint as n
  from {deaths}
  where {where}
  group by 1, 2, 3
  having sum(letters) > 0
)
select k.key, k.n * e.oldest, e.died, e.pos, e.id, k.signature, k.reason
from k
cross join lateral (
  (
    select 0 as oldest, x.died, x.pos, x.id
    from @.letter x
    where x.facet = k.facet and {within}
    order by x.died desc, x.pos desc
    limit {examples}
  )
  union all
  (
    select 1, x.died, x.pos, x.id
    from @.letter x
    where x.facet = k.facet and {within}
    order by x.died, x.pos
    limit 1
  )
) e
