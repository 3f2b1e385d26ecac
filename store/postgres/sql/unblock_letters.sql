-- Lets the letters of a queue block their streams no more.
-- in: queue — number of the queue, of which the letters are locked
-- locks: none
-- out: none
update @.letter set blocks = false
where stream in (select n from @.stream where queue = :queue) and blocks
