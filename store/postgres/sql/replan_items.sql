-- Lets an operation wait again for the letters that died again, unless another redrive moved them.
-- in: operation — its ID
-- locks: item
-- out: none
update @.item i set state = 'pending', early = null, revision = l.revision, fingerprint = l.fingerprint
from @.letter l, @.operation o
where o.id = :operation
  and i.operation = o.n
  and i.state in ('same failure', 'new failure')
  and l.pos = i.letter
  and l.operation = :operation
  and l.status in ('open', 'review', 'quarantined')
