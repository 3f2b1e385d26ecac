-- Part: counts messages that failed before. It reads each of them.
-- whole: select p.reason … true group by k
 as k, count(*), sum(p.state = 1)
from pending p
join current c on c.pos = p.pos
where p.attempts > 0 and p.reason is not null and
