-- Lets the letters of a stream block it no more.
-- in: stream — number of the stream, which is locked
-- locks: letter, by position
-- out: pos, of each
update @.letter set blocks = false
where pos = any(array(select pos from @.letter where stream = :stream and blocks order by pos for update))
returning pos
