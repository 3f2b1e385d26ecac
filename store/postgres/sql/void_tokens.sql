-- Notes of streams that their first message has no token any more, if it is one of these.
-- in: positions — of the messages
-- locks: none; the streams are locked
-- out: none
update @.stream s set has_token = false
where s.has_token
  and s.n = any(array(select ordered_stream from @.message where pos = any(:positions)))
  and (select f.pos from ({{first_without_row}}) f) = any(:positions)
