-- Hides the queued messages of a stream from claims, except two.
-- in: stream — its number
-- in: head, passing — positions of those that stay
-- out: due
update pending indexed by pending_open
set state = 6
where stream = :stream and stream is not null and state <> 6 and state = 0
  and pos not in (:head, :passing)
returning due
