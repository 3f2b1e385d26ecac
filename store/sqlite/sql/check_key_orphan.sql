-- Rule key-orphan: the holder of a dedupe key exists, has that key, and its scope still holds it.
-- out: subject, text
select d.key, 'is held for a message that is gone, has another key, or has let it go'
from dedupe d
left join current c on c.pos = d.pos
join queue q on q.n = d.queue
where c.pos is null or c.dedupe is not d.key or c.queue <> d.queue
  or q.widest & 3 = 0 and c.state not in (0, 1)
  or q.widest & 3 = 1 and c.state not in (0, 1)
  and not exists (
    select 1 from letter l where l.pos = c.pos and l.status not in ('resolved', 'discarded'))
