-- Finds what breaks the rule message-letter: a dead message has a letter.
-- locks: none
-- out: subject, text
select l.pos::text, 'is dead without a letter'
from @.log l
where l.state = 5 and not exists (select from @.letter x where x.pos = l.pos)
