-- Takes messages that wait out of the ordered path of streams; enter_waiting gave them rows.
-- fill: streams — which streams s, as a condition; its arguments are those of this statement
-- locks: none; cursors, batches and streams are locked
-- out: none
update @.message set ordered_stream = null
where pos = any(array(
  select f.pos from @.stream s join @.follower f on f.stream = s.n where {streams}
))
