-- Rule stream-lost: a message or letter is only in the stream that it names, and each stream has
-- messages or letters.
-- out: subject, text
select lower(hex(m.id)), 'is in a stream that is not its own'
from pending p
join message m on m.pos = p.pos
left join stream s on s.n = p.stream
where p.stream is not null and (s.n is null or s.queue <> p.queue or s.name is not m.stream)
  or p.stream is null and p.state = 6
union all
select lower(hex(l.id)), 'is in a stream that is not its own, or on its way or resolved and in one'
from letter l
join message m on m.pos = l.pos
left join stream s on s.n = l.stream
where l.stream is not null and (s.n is null or s.queue <> l.queue or s.name is not m.stream
  or l.status not in ('open', 'review', 'quarantined'))
union all
select s.name, 'is empty, or belongs to no queue or to one without order'
from stream s
left join queue q on q.n = s.queue
where coalesce(json_extract(q.settings, '$.order'), 'none') = 'none'
  or not exists (select 1 from pending p where p.stream = s.n)
  and not exists (select 1 from letter l where l.stream = s.n)
