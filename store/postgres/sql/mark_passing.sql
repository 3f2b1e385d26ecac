-- Lets the messages of a stream pass its head.
-- in: ids — ID of the head
-- in: stream — number of the stream, which is locked
-- locks: pending
-- out: pos, of each
update @.pending set may_pass = true
where stream = :stream
  and state <> 1
  and not may_pass
  and pos <> all(array({{messages_with}}))
returning pos
