-- Counts messages that ended, and those that came back.
-- in: queues — numbers of the queues
-- in: states — in which they ended
-- in: reasons — of discards, or empty
-- in: counts — how many
-- locks: none
-- out: none
insert into @.counter (queue, state, reason, n)
select * from unnest(:queues::int[], :states::smallint[], :reasons::text[], :counts::bigint[])
