-- Part: what a call knows of message c, as keep reads it.
c.pos, c.id, c.queue, c.type, coalesce(c.key, ''), coalesce(c.stream, ''), coalesce(c.dedupe, ''),
c.priority, c.hash, coalesce(c.location, 0), coalesce(c.batch, 0), coalesce(c.row_state, c.state, 0), c.due, c.queue_pos,
c.attempts, c.deliveries, c.crashes, c.generation, c.redrives, c.number, c.owner, c.until, c.received,
c.claimed, coalesce(c.abandoned, ''), coalesce(c.steps, ''), coalesce(c.in_stream, 0), c.rank, c.may_pass,
c.gap, c.reason, c.ended, c.redriven, c.expires,
coalesce((select p.patience from @.pending p where p.pos = c.pos), '')
