-- Rule letter-history: a letter with a text has a failure.
-- out: subject, text
select lower(hex(l.id)), 'has no failure in its history'
from letter l
where l.text <> '' and not exists (select 1 from failure f where f.pos = l.pos)
