-- Rule letter-text: a letter shows the text of its newest failure.
-- out: subject, text
select lower(hex(l.id)), 'does not say what its newest failure says'
from letter l
where l.text <> (
  select text from failure f where f.pos = l.pos order by f.ordinal desc limit 1)
