-- Reads some streams, and whether nothing has been in them for a while.
-- in: after — the last stream that was looked at
-- in: max — how many streams
-- in: before — what ended up to here ended a while ago
-- locks: none
-- out: stream, idle
select
  s.n,
  not {{stream_is_used}}
    and coalesce(
      (
        select l.ended <= :before
        from @.message m
        join @.log l on l.pos = m.pos
        where m.ordered_stream = s.n
        order by m.pos desc
        limit 1
      ),
      true
    )
from (select * from @.stream where n > :after order by n limit :max) s
order by s.n
