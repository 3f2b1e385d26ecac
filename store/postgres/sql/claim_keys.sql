-- Gives messages the dedupe keys that no other message holds. The second of two transactions that
-- want the same key waits here for the first.
-- in: queues — numbers of the queues
-- in: keys — dedupe keys
-- in: positions — of the messages
-- locks: dedupe, by queue and key
-- out: pos, of each that got its key
insert into @.dedupe (queue, key, pos)
select queue, key, pos
from unnest(:queues::int[], :keys::text[], :positions::bigint[]) u (queue, key, pos)
order by 1, 2
on conflict do nothing
returning pos
