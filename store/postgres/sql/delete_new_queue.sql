-- Removes a queue that was made for a message that was then refused.
-- in: queue — number of the queue
-- locks: queue
-- out: none
delete from @.queue
where n = :queue and not exists (select from @.message where queue = :queue) and settings = '{}'
