-- Writes the settings of a queue.
-- in: queue — number of the queue, which is locked
-- in: settings — as JSON
-- in: paused — as the settings say
-- in: strict — whether its order is strict
-- in: age — nanoseconds that one priority is worth
-- in: lease — nanoseconds
-- locks: none
-- out: none
update @.queue set settings = :settings::jsonb, paused = :paused, strict = :strict, age = :age, lease = :lease
where n = :queue
