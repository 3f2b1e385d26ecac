-- Part: whether a queue has rows of pending that claims look at, in each of three indexes.
-- in: queue — number of the queue
(
  exists (select from @.pending where queue = :queue and state = 0 and crashes > 0)
  or exists (select from @.pending where queue = :queue and state = 0 and crashes = 0 and stream is null)
  or exists (select from @.pending where queue = :queue and state = 0 and crashes = 0 and stream is not null)
)
