-- Reads the latest moment that the store knows of: a clock that is behind it was set back.
-- locks: none
-- out: latest
select greatest(
  coalesce(
    (
      select max(l.died)
      from @.queue q
      cross join lateral (select died from @.letter where queue = q.n order by died desc limit 1) l
    ),
    0
  ),
  coalesce((select max(at) from @.audit), 0),
  coalesce((select enqueued from @.message order by pos desc limit 1), 0)
)
