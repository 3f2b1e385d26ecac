-- Rule attachment-orphan: each attachment has its failure.
-- out: subject, text
select printf('failure %d of position %d', a.failure, a.pos), 'has an attachment and is gone'
from attachment a
where not exists (select 1 from failure f where f.pos = a.pos and f.ordinal = a.failure)
