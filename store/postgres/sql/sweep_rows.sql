-- Ends the leases of rows without a stream that are over. The messages wait to be judged.
-- Rows are found by arrays and one by one, so that a plan for empty tables serves full ones.
-- in: now — the time
-- in: dead — numbers of owners that are dead
-- locks: pending (skip locked)
-- out: queue, an empty name of a stream
with v as materialized (
  select p.pos
  from @.pending p
  where p.until > 0 and p.stream is null and (p.until <= :now or p.owner = any(:dead))
  order by p.pos
  for update skip locked
)
update @.pending p set state = 0, {{lease_voided}}
where p.pos = any(array(select pos from v))
returning p.queue, ''
