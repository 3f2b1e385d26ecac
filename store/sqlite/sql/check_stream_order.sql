-- Rule stream-order: claims find only the head of a stream, and a message that may pass it.
-- out: subject, text
select s.name, 'hands out a message before the head'
from stream s
join queue q on q.n = s.queue
where exists (
  select 1 from pending p
  where p.stream = s.n and p.state = 0 and p.may_pass = 0
    and (p.rank <> case json_extract(q.settings, '$.order')
        when 'strict' then (select min(f.rank) from pending f where f.stream = s.n)
        else (select f.rank from pending f where f.stream = s.n order by f.due, f.rank limit 1) end
      or exists (
        select 1 from letter l where l.stream = s.n and l.blocks = 1 and l.rank < p.rank)))
