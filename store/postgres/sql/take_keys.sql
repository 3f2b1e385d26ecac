-- Gives messages dedupe keys that are free and locked.
-- in: queues — numbers of the queues
-- in: keys — dedupe keys
-- in: positions — of the messages
-- locks: none
-- out: none
insert into @.dedupe (queue, key, pos)
select * from unnest(:queues::int[], :keys::text[], :positions::bigint[])
on conflict (queue, key) do update set pos = excluded.pos
