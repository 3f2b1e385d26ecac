-- Gives the messages of batches that are over rows, in which they wait, to be judged or not; those of
-- strict streams get theirs by sweep_ordered.
-- in: batches — numbers of the batches, which are locked
-- in: now — the time
-- locks: none
-- out: none
insert into @.pending (
  pos, queue, state, priority, due, queue_pos, attempts, deliveries, crashes, generation, redrives,
  number, owner, until, received, claimed, rank, may_pass, gap, abandoned, patience
)
select
  p.pos, p.queue, 0, 0, :now, p.pos, 0, 1, (not {{owner_was_told}})::int, 1, 0,
  1, 0, 0, p.claimed, p.claimed, 0, false, false, {{member_vanished}}
from @.member p
where p.batch = any(:batches) and p.stream is null
