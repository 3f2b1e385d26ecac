-- Reads the letters that confirmMany can handle: pending items of an operation that are dead, hold
-- up no message and have no dedupe key.
-- in: letters — IDs as JSON
-- in: operation — its number
-- in: dead — state of the message
-- in: open, review — statuses of the letter
-- out: pos, queue, id, status, facet, died
select l.pos, l.queue, l.id, l.status, l.facet, l.died
from json_each(:letters) j
cross join letter l on l.id = unhex(j.value)
cross join facet f on f.n = l.facet
cross join item i on i.operation = +:operation and i.letter = l.pos
cross join log g on g.pos = l.pos
cross join message m on m.pos = l.pos
where i.state = 'pending' and g.state = :dead and l.status in (:open, :review)
  and l.stream is null and m.dedupe is null
