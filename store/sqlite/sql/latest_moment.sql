-- Reads the latest time that the store has written.
-- out: latest
select max(
  coalesce((select max(died) from letter), 0),
  coalesce((select max((select max(at) from failure f where f.queue = q.n and f.decision = 'retry')) from queue q), 0),
  coalesce((select max(at) from audit), 0),
  coalesce((select enqueued from message order by pos desc limit 1), 0))
