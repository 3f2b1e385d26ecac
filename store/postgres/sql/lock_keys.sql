-- Locks dedupe keys, also those that no message holds: these get rows with the position 0, which
-- go again.
-- fill: keys — a query for queues and keys; its arguments are those of this statement
-- locks: dedupe, by queue and key
-- out: none
insert into @.dedupe as d (queue, key, pos)
select distinct *, 0 from ({keys}) u order by 1, 2
on conflict (queue, key) do update set pos = d.pos
