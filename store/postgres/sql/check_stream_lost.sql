-- Finds what breaks the rule stream-lost: a message is in the stream that it names.
-- locks: none
-- out: subject, text
select p.pos::text, 'is in a stream that is not its own, or behind in none'
from @.pending p
join @.message m on m.pos = p.pos
left join @.stream s on s.n = p.stream
where p.stream is not null and (s.n is null or s.name is distinct from m.stream or s.queue <> p.queue)
  or p.stream is null and p.state = 6
union all
select m.pos::text, 'is on the ordered path of a stream that is not its own'
from @.stream s
join @.message m on m.ordered_stream = s.n and m.pos > s.at
where s.name is distinct from m.stream or s.queue <> m.queue
