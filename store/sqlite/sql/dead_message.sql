-- Reads what a redrive, a restore and a confirmation have to know about the message of a letter.
-- in: pos — of the message
-- out: generation, redrives, number, received, steps, priority, state, gap, stream, dedupe, expires, origin
select c.generation, c.redrives, c.number, c.received, c.steps, c.priority, c.state, c.gap,
  c.stream, c.dedupe, c.expires, case when instr(c.origin, '"body_at"') then c.origin end
from current c
where c.pos = +:pos
