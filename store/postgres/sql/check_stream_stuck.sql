-- Finds what breaks the rule stream-stuck: the first message of a stream may go, or something holds it up.
-- locks: none
-- out: subject, text
select s.name, 'waits, and nothing holds up its first message'
from (select s.*, q.strict from @.stream s join @.queue q on q.n = s.queue) s
{{join_leased}}
{{join_first}}
where s.n not in (
    select u.stream
    from @.token t
    cross join lateral unnest(t.streams, t.positions) u (stream, pos)
    cross join lateral @.resolve_token(u.stream, -u.pos) f
    where u.pos < 0 and f.pos is null
  )
  and first.pos is not null
  and not {{is_held_up}}
  and leased.pos is null
  and (
    first.rowless and not (s.has_token and exists (select from @.valid_token t where t.pos = first.pos))
    or exists (select from @.pending p where p.pos = first.pos and p.state = 6)
  )
