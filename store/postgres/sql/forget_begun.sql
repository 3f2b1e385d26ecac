-- Removes what was noted of leases whose messages begin to run.
-- in: positions — of the messages
-- in: numbers — of the leases
-- locks: progress
-- out: none
delete from @.progress where (pos, number) in (select * from unnest(:positions::bigint[], :numbers::bigint[]))
