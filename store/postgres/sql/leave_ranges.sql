-- Gives every plain message that is leased or waits a row of its own.
-- in: now — the time
-- locks: none; the tables are locked
-- out: none
insert into @.pending (
  pos, queue, state, priority, due, queue_pos, attempts, deliveries, crashes, generation, redrives,
  number, owner, until, received, claimed, abandoned, rank, may_pass, gap
)
select
  p.pos, p.queue, 0, 0, :now, p.pos, 0, 1, 1, 1, 0,
  1, 0, 0, p.claimed, p.claimed, {{abandoner}}, 0, false, false
from @.member p
where p.stream is null
union all
select
  f.pos, f.queue, 0, 0, f.enqueued, f.pos, 0, 0, 0, 1, 0,
  0, 0, 0, 0, 0, null, 0, false, false
from @.fresh f
