-- Releases the dedupe key of a message, if it holds it.
-- in: pos — of the message
delete from dedupe
where queue = ?1 >> 40 and key = (select dedupe from message where pos = ?1) and pos = ?1
