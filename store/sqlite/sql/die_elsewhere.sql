-- Writes to the log that a message died again at a foreign broker.
-- in: state, ended, attempts, deliveries, crashes, generation, redrives, number — new values
-- in: received, redriven — new values
-- in: pos — of the message
update log
set state = :state, ended = :ended, attempts = :attempts, deliveries = :deliveries,
  crashes = :crashes, generation = :generation, redrives = :redrives, number = :number,
  received = :received, redriven = nullif(:redriven, 0), note = null
where pos = :pos
