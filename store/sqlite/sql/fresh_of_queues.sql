-- Part: the positions of messages that no claim has reached, queue by queue.
-- whole: …
-- out: pos
select m.pos
from queue q
cross join message m not indexed on m.pos between (q.n << 40) + q.cursor + 1 and (q.n << 40) + q.last
where q.fresh > 0 and m.own = 0
