-- Notes how far the holder of leases is. Leases that are over, or of another owner by now, are
-- left out.
-- in: positions — of the messages
-- in: numbers — of the leases
-- in: batches — that they were part of at first, or 0
-- in: owner — number in the table owner
-- in: succeeded — whether the messages succeeded; else they wait
-- locks: progress, by position
-- out: none
insert into @.progress (pos, number, batch, owner, succeeded)
select pos, number, batch, :owner, :succeeded
from (
  select distinct * from unnest(:positions::bigint[], :numbers::bigint[], :batches::bigint[]) u (pos, number, batch)
  order by pos
) u
where exists (select from @.pending p where p.pos = u.pos and p.number = u.number and p.owner = :owner)
  or exists (select from @.batch b where b.n = u.batch and b.owner = :owner)
on conflict (pos, number) do update set succeeded = excluded.succeeded
