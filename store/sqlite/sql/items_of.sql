-- Reads the items of an operation for letters.
-- in: operation — its number
-- in: positions — of the letters, as JSON
-- out: letter, state, revision
select i.letter, i.state, i.revision
from json_each(:positions) j
cross join item i on i.operation = +:operation and i.letter = j.value
