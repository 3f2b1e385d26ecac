-- Gives a message a dedupe key.
-- in: queue, key — the key, which no message holds
-- in: pos — of the message
insert into dedupe (queue, key, pos)
values (:queue, :key, :pos)
