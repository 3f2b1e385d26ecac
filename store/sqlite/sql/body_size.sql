-- Part: counts the bytes of the body that belongs to a row of pending.
-- whole: select … from pending
-- out: size
(select length(body) from message m where m.pos = pending.pos)
