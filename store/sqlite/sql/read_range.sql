-- Reads the messages of a claimed range.
-- in: first, last — positions of the range
-- out: message_columns
select {{message_columns}}
from message m
where m.pos between :first and :last and m.own = 0
order by m.pos
