-- Notes that a queue was asked for messages. It leaves out a queue that others have locked.
-- in: queue — number of the queue
-- in: now — time of the claim
-- locks: queue, skips what others have locked
-- out: none
update @.queue set asked = :now
where n = (select n from @.queue where n = :queue for no key update skip locked)
