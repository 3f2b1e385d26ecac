-- Tells whether a dead message holds up the first message of a stream.
-- in: stream — its number
-- in: rank — of the first message, 0 if there is none
-- out: blocked
select exists (
  select 1 from letter where stream = :stream and blocks = 1 and (:rank = 0 or rank < :rank))
