-- Makes items pending again that died again and that no other redrive has moved since.
-- in: operation — its number
-- in: id — of the operation
update item
set state = 'pending', early = '', revision = l.revision, fingerprint = l.fingerprint
from letter l
where item.operation = :operation and item.state in ('same failure', 'new failure') and l.pos = item.letter
  and l.operation = :id and l.status in ('open', 'review', 'quarantined')
