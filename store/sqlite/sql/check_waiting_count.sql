-- Rule waiting-count: the counters of waiting messages fit the rows.
-- out: subject, text
select q.name, 'counters of what waits differ from its rows'
from queue q
where exists (
    select queue, state, due >> 36, count(*)
    from pending
    where state <> 1 and queue = q.n
    group by 1, 2, 3
    except
    select queue, state, slot, n from waiting)
  or exists (
    select queue, state, slot, n from waiting where queue = q.n
    except
    select queue, state, due >> 36, count(*) from pending where state <> 1 group by 1, 2, 3)
