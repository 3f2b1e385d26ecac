-- Rule retrying-count: the counters of messages that failed before fit the rows.
-- out: subject, text
select q.name, 'counters of what retries differ from its rows'
from queue q
where exists (
    select queue, attempts, reason, state = 1, count(*)
    from pending
    where attempts > 0 and reason is not null and queue = q.n
    group by 1, 2, 3, 4
    except
    select queue, attempts, reason, leased, n from retrying)
  or exists (
    select queue, attempts, reason, leased, n from retrying where queue = q.n
    except
    select queue, attempts, reason, state = 1, count(*)
    from pending
    where attempts > 0 and reason is not null
    group by 1, 2, 3, 4)
