-- Counts messages that are removed, by how they ended.
-- in: positions — of the messages
-- in: what — pruned or purged
-- locks: tally, by queue and name
-- out: none
insert into @.tally (queue, what, name, n)
select
  queue, :what::text,
  case state when 2 then 'succeeded' when 3 then 'discarded' when 4 then 'canceled' else 'dead' end,
  count(*)
from @.log
where pos = any(:positions)
group by 1, 3
order by 1, 3
on conflict (queue, what, name) do update set n = tally.n + excluded.n
