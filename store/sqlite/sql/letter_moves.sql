-- Writes a change of a letter that is no death.
-- in: facet, status, resolved, note, note_sum, revision, operation — new values
-- in: pos — of the letter
update letter
set facet = :facet, status = :status, resolved = :resolved, note = :note, note_sum = :note_sum,
  revision = :revision, operation = :operation
where pos = :pos
