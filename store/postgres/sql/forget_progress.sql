-- Removes what an owner, and owners off the list, noted of leases that are over.
-- in: owner — number in the table owner
-- locks: progress
-- out: none
delete from @.progress s
where (s.owner = :owner or not exists (select from @.owner o where o.n = s.owner offset 0))
  and not exists (
    select from @.pending p where p.pos = s.pos and p.number = s.number and p.owner = s.owner offset 0
  )
  and not exists (select from @.batch b where b.n = s.batch offset 0)
