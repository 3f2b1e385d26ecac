-- Removes what note_adding noted: rows that come and go in one transaction are seen by no other,
-- and still make it wait.
-- in: queues — numbers of the queues of the streams
-- in: names — of the streams
-- locks: none
-- out: none
delete from @.adding a using @.stream s where a.stream = s.n and {{streams_named}}
