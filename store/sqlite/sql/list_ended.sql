-- Part: the generations of messages that ended: what is in the log and did not die, the latest death of
-- each letter, and the failures by which earlier generations died.
-- whole: … where true order by e.at desc, e.pos desc limit 1
with ends as (
  select pos, state, ended as at, 0 as generation from log where state <> 5
  union all
  select l.pos, 5, l.died, coalesce(p.generation - 1, coalesce(g.generation, 1) - (g.state <> 5))
  from letter l left join log g on g.pos = l.pos left join pending p on p.pos = l.pos
  union all
  select f.pos, 5, f.at, f.generation
  from (
    select pos, ordinal, at, coalesce(iif(json_valid(doc), doc ->> '$.generation', 1), 1) as generation
    from failure where decision in ('bury', 'hold', 'halt')
  ) f
  left join log g on g.pos = f.pos left join pending p on p.pos = f.pos
  where f.generation < coalesce(p.generation - 1, coalesce(g.generation, 1) - (g.state <> 5))
    and not exists (
      select 1 from failure n
      where n.pos = f.pos and n.ordinal = f.ordinal + 1 and iif(json_valid(n.doc), n.doc ->> '$.generation', 1) = f.generation
    )
)
select e.at, e.pos, e.state, coalesce(m.key, ''), q.name,
  coalesce((
    select iif(json_valid(doc), doc ->> '$.type', '') from failure f
    where f.pos = e.pos and e.state = 5 and iif(json_valid(doc), doc ->> '$.generation', 1) = e.generation
    order by ordinal desc limit 1
  ), ''),
  coalesce((
    select text from failure f
    where f.pos = e.pos and e.state = 5 and iif(json_valid(doc), doc ->> '$.generation', 1) = e.generation
    order by ordinal desc limit 1
  ), ''),
  m.id
from ends e join message m on m.pos = e.pos join queue q on q.n = m.pos >> 40
