-- Reads whether messages of a queue are on their way.
-- in: queue — number of the queue, which is locked
-- locks: none
-- out: busy
select
  exists (select from @.pending where queue = :queue)
  or exists (select from @.batch where queue = :queue)
  or exists (select from @.fresh where queue = :queue)
  or exists (select from @.follower where queue = :queue)
