-- Writes a change of letters that is no death, and the same for all of them.
-- in: facet, status, resolved, note, note_sum, operation — new values
-- in: moves — how many changes it is
-- in: positions — of the letters, as JSON
update letter
set facet = :facet, status = :status, resolved = :resolved, note = :note, note_sum = :note_sum,
  operation = :operation, revision = revision + :moves
where pos in (select value from json_each(:positions))
