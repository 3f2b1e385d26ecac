-- Rule queue-count: the row of a queue counts its messages.
-- out: subject, text
select q.name,
  'newest message is ' || max(m.pos & 0xffffffffff) || ', the queue says ' || q.last
from queue q
join message m on m.pos > q.n << 40 and m.pos <= q.n << 40 | 0xffffffffff
group by q.n
having max(m.pos & 0xffffffffff) > q.last
union all
select q.name, 'has ' || count(m.pos) || ' new messages, the queue says ' || q.fresh
from queue q
left join message m on m.own = 0
  and m.pos > q.n << 40 | q.cursor and m.pos <= q.n << 40 | 0xffffffffff
group by q.n
having count(m.pos) <> q.fresh
union all
select name, 'cursor ' || cursor || ' is beyond the newest message ' || last
from queue
where cursor > last
