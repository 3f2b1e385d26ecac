-- Names the streams of messages that hold dedupe keys, and others.
-- in: queues — numbers of the queues of the keys
-- in: keys — dedupe keys
-- in: more_queues — numbers of the queues of other streams
-- in: more_names — of the other streams
-- locks: none
-- out: queue, name
select s.queue, s.name
from @.stream s
where s.n in (
  select stream
  from @.pending
  where pos in (
    select pos
    from @.dedupe
    where (queue, key) in (select * from unnest(:queues::int[], :keys::text[]))
  ) and stream is not null
)
union
select * from unnest(:more_queues::int[], :more_names::text[])
