-- Reads letters with what a change has to know about them and their messages.
-- in: letters — IDs as JSON
-- in: headers — whether to read the headers of the messages
-- out: pos, queue, id, status, redrivable, needs_review, revision, stream, rank, blocks, facet, died
-- out: operation, note, waits, ended, message, name, dedupe, priority, expires, hash, origin
-- out: headers, state, attempts, deliveries, crashes, generation, redrives, redriven, number
-- out: received, steps, gap, resolved, first_failed
select l.pos, l.queue, l.id, l.status, l.redrivable, l.needs_review, l.revision, l.stream, l.rank,
  l.blocks, l.facet, l.died, l.operation, l.note,
  p.pos is not null, g.ended, m.id, m.stream, m.dedupe, m.priority, m.expires, m.hash,
  case when instr(m.origin, '"body_at"') then m.origin end, iif(:headers, m.headers, null),
  g.state, coalesce(g.attempts, 1), coalesce(g.deliveries, 1), coalesce(g.crashes, 0),
  coalesce(g.generation, 1), coalesce(g.redrives, 0), g.redriven, coalesce(g.number, 1),
  g.received, g.steps, g.gap, l.resolved, l.first_failed
from json_each(:letters) j
cross join letter l on l.id = unhex(j.value)
left join message m on m.pos = l.pos
left join log g on g.pos = l.pos
left join pending p on p.pos = l.pos
