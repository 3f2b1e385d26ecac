-- Finds what breaks the rule stream-stuck: the first message of a stream may go, or something holds it up.
-- locks: none
-- out: subject, text
select s.name, 'waits, and nothing holds up its first message'
from (select s.*, q.strict from @.stream s join @.queue q on q.n = s.queue) s
{{join_leased}}
{{join_first}}
where s.n not in (
    select u.stream
    from @.turn t
    cross join lateral unnest(t.streams, t.places) u (stream, place)
    cross join lateral @.found(u.stream, -u.place) f
    where u.place < 0 and f.pos is null
  )
  and first.pos is not null
  and not {{is_held_up}}
  and leased.pos is null
  and (
    first.lane and not (s.turned and exists (select from @.turned t where t.pos = first.pos))
    or exists (select from @.pending p where p.pos = first.pos and p.state = 6)
  )
