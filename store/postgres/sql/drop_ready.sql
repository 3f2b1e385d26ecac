-- Removes tokens of messages that were read before there was room for them.
-- in: positions — of the messages
-- locks: none; the cursors are locked
-- out: none
delete from @.ready r using @.message m
where m.pos = any(:positions) and r.queue = m.queue and r.due = m.enqueued and r.pos = m.pos
