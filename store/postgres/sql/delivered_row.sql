-- Part: the columns of row p of pending that a delivery shows.
p.due, p.queue_pos, p.attempts, p.deliveries, p.crashes, p.generation, p.redrives, p.number, p.until,
p.received, p.claimed, p.abandoned, p.steps, coalesce(p.stream, 0), p.rank, p.gap, p.reason, p.alone
