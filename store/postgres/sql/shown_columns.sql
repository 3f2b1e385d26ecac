-- Part: what callers are shown of message c, but for body and history.
c.pos, c.id, c.queue_name, c.type, coalesce(c.key, ''), coalesce(c.stream, ''), coalesce(c.dedupe, ''),
c.priority, c.hash, coalesce(c.headers, ''), coalesce(c.origin, ''), c.enqueued, c.expires,
coalesce(c.state, -1), c.due, coalesce(c.attempts, 0), coalesce(c.deliveries, 0), coalesce(c.crashes, 0),
coalesce(c.generation, 0), coalesce(c.redrives, 0),
coalesce((select o.name from @.owner o where o.n = c.owner), ''), c.until, c.claimed,
coalesce(c.received, 0), coalesce(c.steps, ''), c.ended, c.may_pass, coalesce(c.gap, false), c.reason,
coalesce(c.redriven, 0), coalesce((select p.patience from @.pending p where p.pos = c.pos), '')
