-- Removes streams that nothing is in.
-- in: streams — numbers of the streams, which are locked
-- locks: none
-- out: none
delete from @.stream s where n = any(:streams) and not {{stream_is_used}}
