-- Takes rows of log that are removed out of the counters.
-- in: positions — of the messages
-- locks: none
-- out: none
insert into @.counter (queue, state, reason, n)
select queue, state, case state when 3 then coalesce(nullif(reason, ''), 'unknown') else '' end, -count(*)
from @.log
where pos = any(:positions)
group by 1, 2, 3
