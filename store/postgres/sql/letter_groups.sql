-- Groups letters, with the newest and the oldest of each group.
-- fill: key — what they are grouped by
-- fill: letters — the tables that the filter reads, with l for the letter
-- fill: where — the filter; its arguments are those of this statement
-- fill: examples — how many of the newest
-- locks: none
-- out: key, count on the oldest and 0 on the others, died, pos, id, signature, reason
with found as (
  select
    {key} as key, l.died, l.pos, l.id, l.signature, l.reason,
    row_number() over (partition by {key} order by l.died desc, l.pos desc) as nth,
    count(*) over (partition by {key}) as n
  from {letters}
  where {where}
)
select key, case when nth = n then n else 0 end, died, pos, id, signature, reason
from found
where nth <= {examples} or nth = n
