-- Lets claims find two messages of a stream.
-- in: head, passing — their positions
-- out: due
update pending
set state = 0
where pos in (:head, :passing) and state = 6
returning due
