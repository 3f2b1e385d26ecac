-- Finds what breaks the rule counters: attempts, crashes and deliveries fit each other.
-- locks: none
-- out: subject, text
select p.pos::text, 'has impossible counters'
from @.pending p
where p.attempts < 0
  or p.attempts > p.deliveries
  or p.crashes > p.deliveries
  or p.deliveries > p.number
  or p.generation <> p.redrives + 1
