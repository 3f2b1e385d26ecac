-- Part: the positions of messages that wait, the newest of each table, and perhaps of some others.
-- fill: names — a condition on queue q
-- fill: limit — how many of each table at most
with chosen as (select q.n from @.queue q where {names})
(select p.pos from @.pending p where p.queue in (select n from chosen) order by p.pos desc limit {limit})
union all (
  select m.pos
  from chosen q
  join @.cursor c on c.queue = q.n
  cross join lateral (
    select m.pos
    from @.message m
    where m.queue = c.queue and m.by_range and (m.tx, m.pos) > (c.tx, c.pos)
    order by m.tx desc, m.pos desc
    limit {limit}
  ) m
  limit {limit}
)
union all (
  select m.pos
  from chosen q
  join @.cursor c on c.queue = q.n
  cross join lateral unnest(c.late, c.done) l (tx, done)
  join @.message m on m.queue = c.queue and m.by_range and m.tx = l.tx and m.pos > l.done
  limit {limit}
)
union all (
  select m.pos
  from chosen q
  join @.stream s on s.queue = q.n
  join @.message m on m.ordered_stream = s.n and m.pos > s.at
  limit {limit}
)
