-- Hides the queued messages of a stream from claims, except the one that is handed out.
-- in: stream — its number
-- in: pos — position of the message that is handed out
-- out: due
update pending indexed by pending_open
set state = 6
where stream = :stream and stream is not null and state <> 6 and state = 0 and pos <> :pos
returning due
