-- Marks letters as resolved that get the same facet.
-- in: facet, status, resolved, note_sum, operation — new values
-- in: positions — of the letters, as JSON
update letter
set facet = :facet, status = :status, resolved = :resolved, note = '', note_sum = :note_sum,
  revision = revision + 1, operation = :operation
where pos in (select value from json_each(:positions))
