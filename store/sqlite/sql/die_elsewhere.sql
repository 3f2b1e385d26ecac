-- Writes another death, which a foreign broker told, to the log.
-- in: state, ended, attempts, deliveries, crashes, generation, redrives, number — new values
-- in: received — new values
-- in: pos — of the message
update log
set state = :state, ended = :ended, attempts = :attempts, deliveries = :deliveries,
  crashes = :crashes, generation = :generation, redrives = :redrives, number = :number,
  received = :received, note = null
where pos = :pos
