-- Part: which streams s have the given names. The sum keeps PostgreSQL from an index by queue
-- alone, where it thinks that a queue has few streams.
-- in: queues — numbers of the queues of the streams
-- in: names — of the streams
s.n = any(array(
  select x.n
  from unnest(:queues::int[], :names::text[]) u (queue, name)
  cross join lateral (
    select o.n from @.stream o where o.queue + 0 = u.queue and o.name = u.name limit 1
  ) x
))
