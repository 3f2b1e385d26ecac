-- Part: the messages of a queue that wait, wherever they lie.
-- in: queue — number of the queue
select pos from @.pending where queue = :queue and state <> 1
union all
select pos from @.fresh where queue = :queue
union all
select pos from @.follower where queue = :queue
