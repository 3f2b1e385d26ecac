-- Reads the state of a message, and whether it has or had a row of pending, has one now, and has
-- ended.
-- in: pos — of the message
-- out: own, has_row, state, deliveries, ended
select m.own, p.pos is not null, coalesce(p.state, g.state, 0),
  coalesce(p.deliveries, g.deliveries, 0), g.pos is not null
from message m
left join pending p on p.pos = m.pos
left join log g on g.pos = m.pos
where m.pos = +:pos
