-- Counts letters by queue that no operator has resolved or redriven.
-- locks: none
-- out: queue, count
select queue, sum(letters)::bigint
from @.death
where whole and status not in ('resolved', 'discarded', 'redriving')
group by 1
having sum(letters) <> 0
