-- Part: ends the next generation of dead messages as it began: a broker took them.
-- in: state, ended, note — new values
-- whole: … where pos = 1
update log
set state = :state, ended = :ended, attempts = 0, deliveries = 0, crashes = 0,
  generation = coalesce(generation, 1) + 1, redrives = coalesce(redrives, 0) + 1, redriven = :ended,
  number = coalesce(number, 1), note = :note
