-- Counts discarded messages that are removed, by reason.
-- in: positions — of the messages
-- locks: tally, by queue and name
-- out: none
insert into @.tally (queue, what, name, n)
select queue, 'discards', coalesce(nullif(reason, ''), 'unknown'), count(*)
from @.log
where pos = any(:positions) and state = 3
group by 1, 3
order by 1, 3
on conflict (queue, what, name) do update set n = tally.n + excluded.n
