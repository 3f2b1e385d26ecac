-- Makes items pending again whose letters died again.
-- in: operation — its number
-- in: id — of the operation
update item
set state = 'pending', revision = l.revision, fingerprint = l.fingerprint
from letter l
where item.operation = :operation and item.state = 'done' and l.pos = item.letter
  and l.operation = :id and l.status in ('open', 'review', 'quarantined')
