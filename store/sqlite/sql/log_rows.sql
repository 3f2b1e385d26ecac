-- Writes that 32 messages with rows of their own succeeded, as their rows tell.
-- in: now — when
insert into log (pos, state, ended, received, attempts, deliveries, crashes, generation, redrives,
  number, steps, gap)
select pos, 2, :now, received, attempts, deliveries, crashes, generation, redrives, number, steps,
  gap
from pending
where pos in {{positions}}
