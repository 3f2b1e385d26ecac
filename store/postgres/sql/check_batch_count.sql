-- Finds what breaks the rule batch-count: a batch counts its members.
-- locks: none
-- out: subject, text
select
  'batch ' || b.n,
  'is about ' || (select count(*) from @.member m where m.batch = b.n) || ' messages, not ' || b.remains
from @.batch b
where b.remains <> (select count(*) from @.member m where m.batch = b.n) or b.remains < 1
