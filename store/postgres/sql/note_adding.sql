-- Notes which streams a transaction of a caller adds to: a second one waits here for the first.
-- in: queues — numbers of the queues of the streams
-- in: names — of the streams
-- locks: adding
-- out: none
insert into @.adding (stream)
select s.n from @.stream s where {{streams_named}} order by s.n
