-- Finds what breaks the rule operation-letter: an operation waits for letters that exist.
-- locks: none
-- out: subject, text
select o.id::text, 'waits for a letter that is gone'
from @.item i
join @.operation o on o.n = i.operation
where i.state = 'pending' and not exists (select from @.letter l where l.pos = i.letter)
