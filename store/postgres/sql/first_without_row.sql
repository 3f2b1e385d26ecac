-- Part: of stream s the first message without a row that has not ended. Those before it may have
-- ended since the row of the stream was written.
select m.pos, m.enqueued
from @.message m
where m.ordered_stream = s.n and m.pos > s.at and (select l.pos from @.log l where l.pos = m.pos) is null
order by m.pos
limit 1
