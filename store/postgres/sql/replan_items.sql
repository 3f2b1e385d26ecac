-- Lets an operation wait again for the letters that it moved and that died again.
-- in: operation — its ID
-- locks: item
-- out: none
update @.item i set state = 'pending', revision = l.revision, fingerprint = l.fingerprint
from @.letter l, @.operation o
where o.id = :operation
  and i.operation = o.n
  and i.state = 'done'
  and l.pos = i.letter
  and l.operation = :operation
  and l.status in ('open', 'review', 'quarantined')
