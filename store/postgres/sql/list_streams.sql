-- Lists streams, those first that are blocked or wait longest, with the message that matters most:
-- the leased one, the letter that blocks, or the first.
-- in: now — the time
-- in: max — how many at most
-- fill: where — which streams s of queues q; its arguments come after these
-- locks: none
-- out: queue, name, blocked, due, stream, followers, passing, dead, state, until, letter, message,
-- out: attempts, text of the newest failure, owner
select
  s.queue_name, s.name, s.blocked::int, s.due, s.n,
  (select count(*) from @.pending p where p.stream = s.n)
    + (select count(*) from @.follower f where f.stream = s.n)
    + coalesce(leased.rowless, false)::int,
  (select count(*) from @.pending p where p.stream = s.n and p.may_pass),
  (select count(*) from @.letter l where l.stream = s.n),
  case
    when leased.pos is not null then 'leased'
    when blocker.pos is not null then 'blocked'
    when first.pos is null then 'idle'
    when first.due > :now then 'waiting'
    else 'ready'
  end,
  case when leased.pos is null and blocker.pos is null and first.due > :now then first.due else 0 end,
  case when leased.pos is null then blocker.id end,
  c.id, coalesce(c.attempts, 0), coalesce({{newest_text}}, ''),
  coalesce((select o.name from @.owner o where o.n = c.owner), '')
from (
  select s.*, q.name as queue_name, q.strict
  from @.stream s
  join @.queue q on q.n = s.queue
  where {where} and {{stream_is_used}}
  order by s.blocked desc, s.due desc, s.n
  limit :max
) s
{{join_leased}}
{{join_first}}
left join lateral (
  select l.pos, l.id
  from @.letter l
  where l.stream = s.n and l.blocks and (first.pos is null or l.rank < first.rank)
  order by l.rank
  limit 1
) blocker on true
left join lateral (
  select * from @.current c where c.pos = coalesce(leased.pos, blocker.pos, first.pos) offset 0
) c on true
order by s.blocked desc, s.due desc, s.n
