-- Part: the columns of the view current in the order in which scanCurrent reads them.
-- whole: select … from current c
-- out: pos, id, queue_name, type, key, stream, dedupe, priority, hash, headers, origin, enqueued,
-- out: expires, state, due, has_row, attempts, deliveries, crashes, generation, redrives, owner,
-- out: until, received, steps, ended, own, may_pass, gap, claimed, redriven, patience
c.pos, c.id, c.queue_name, c.type, c.key, c.stream, c.dedupe, c.priority, c.hash, c.headers,
c.origin, c.enqueued, c.expires, c.state, c.due, c.has_row, c.attempts, c.deliveries, c.crashes,
c.generation, c.redrives, c.owner, c.until, c.received, c.steps, c.ended, c.own, c.may_pass, c.gap,
c.claimed, c.redriven, (select p.patience from pending p where p.pos = c.pos)
