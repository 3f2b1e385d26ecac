-- Locks the streams of messages in batches of the ordered path.
-- in: batches — numbers of the batches, which are locked
-- locks: stream (skip locked)
-- out: stream, pos, queue, name of the stream
select s.n, p.pos, s.queue, s.name
from @.member p
join @.stream s on s.n = p.stream
where p.batch = any(:batches)
order by s.queue, s.name
for no key update of s skip locked
