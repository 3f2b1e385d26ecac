-- Tells whether a message is handed out after a later one, or before an earlier one that waits or
-- is dead.
-- in: stream — its number
-- in: rank — of the message
-- out: gap
select :rank < (select top from stream where n = :stream)
  or exists (
    select 1 from pending indexed by pending_stream where stream = :stream and rank < :rank)
  or exists (select 1 from letter where stream = :stream and blocks = 0 and rank < :rank)
  or exists (select 1 from letter where stream = :stream and blocks = 1 and rank < :rank)
