-- Lets the messages of a stream pass its head.
-- in: stream — number of the stream
-- in: head — ID of the head
update pending set may_pass = 1
where stream = :stream
  and state <> 1
  and may_pass = 0
  and pos <> coalesce((select pos from message where id = :head), 0)
