-- Rule stream-stuck: the head of a stream can be handed out unless something holds it up.
-- out: subject, text
select s.name, 'waits, and nothing holds up its first message'
from stream s
join queue q on q.n = s.queue
where not exists (select 1 from pending p where p.stream = s.n and p.state = 1)
  and exists (
    select 1 from pending p
    where p.stream = s.n and p.state = 6
      and p.rank = case json_extract(q.settings, '$.order')
        when 'strict' then (select min(f.rank) from pending f where f.stream = s.n)
        else (select f.rank from pending f where f.stream = s.n order by f.due, f.rank limit 1) end
      and not exists (
        select 1 from letter l where l.stream = s.n and l.blocks = 1 and l.rank < p.rank))
