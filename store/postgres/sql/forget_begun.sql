-- Removes what was noted of leases whose messages begin to run.
-- in: positions — of the messages
-- in: numbers — of the leases
-- locks: progress
-- out: none
-- "is true" keeps the list from being read again for each row, which a join may do.
delete from @.progress
where pos = any(:positions)
  and ((pos, number) in (select * from unnest(:positions::bigint[], :numbers::bigint[]))) is true
