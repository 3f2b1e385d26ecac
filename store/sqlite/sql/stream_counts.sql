-- Counts the messages of a stream that wait or are leased, those that may pass, and the dead.
-- in: stream — its number
-- out: followers, passing, dead
select (select count(*) from pending indexed by pending_stream where stream = :stream),
  (select count(*) from pending where stream = :stream and may_pass = 1),
  (select count(*) from letter where stream = :stream)
