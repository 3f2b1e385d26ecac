-- Part: the columns of row p of pending that a delivery shows, and of its letter if it was redriven.
p.due, p.queue_pos, p.attempts, p.deliveries, p.crashes, p.generation, p.redrives, p.number, p.until,
p.received, p.claimed, p.abandoned, p.steps, coalesce(p.stream, 0), p.rank, p.gap, p.reason, p.alone, p.redriven,
case when p.redrives > 0 then (select l.operation from @.letter l where l.pos = p.pos) end,
coalesce(case when p.redrives > 0 then (select l.first_failed from @.letter l where l.pos = p.pos) end, 0), p.patience
