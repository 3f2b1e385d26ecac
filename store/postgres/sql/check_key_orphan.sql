-- Finds what breaks the rule key-orphan: a dedupe key is held by a message that has it.
-- locks: none
-- out: subject, text
select d.key, 'is held by a message that has another'
from @.dedupe d
left join @.message m on m.pos = d.pos
where m.dedupe is distinct from d.key or m.queue <> d.queue
