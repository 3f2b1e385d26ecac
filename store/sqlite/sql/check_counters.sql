-- Rule counters: attempts, deliveries, crashes, leases and generations do not contradict each other.
-- out: subject, text
select lower(hex(m.id)),
  'has impossible counters: ' || p.attempts || ' attempts, ' || p.deliveries
  || ' deliveries, lease ' || p.number
from pending p
left join message m on m.pos = p.pos
where p.attempts < 0 or p.deliveries < p.attempts or p.crashes > p.deliveries
  or p.number < p.deliveries or p.generation <> p.redrives + 1
