-- Notes of streams that their first message has no token any more, if it is one of these.
-- in: positions — of the messages
-- locks: none; the streams are locked
-- out: none
update @.stream s set turned = false
where s.turned
  and s.n = any(array(select lane from @.message where pos = any(:positions)))
  and (select f.pos from ({{first_without_row}}) f) = any(:positions)
