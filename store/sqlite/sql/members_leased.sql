-- Part: lists the members of all batches.
-- whole: …
-- out: pos
select m.pos
from batch b
join message m not indexed on m.pos between b.first and b.last
where m.own = 0
