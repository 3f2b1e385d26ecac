-- Ends the leases of rows in streams that are over. The messages wait until the heads of their
-- streams are recomputed.
-- in: now — the time
-- in: dead — numbers of owners that are dead
-- locks: pending and stream together (skip locked)
-- out: queue, name of the stream
with v as materialized (
  select p.pos
  from @.pending p
  cross join lateral (select o.n from @.stream o where o.n = p.stream offset 0) s
  where p.until > 0 and (p.until <= :now or p.owner = any(:dead))
  order by p.pos
  for no key update of p, s skip locked
)
update @.pending p set state = 6, {{lease_voided}}
where p.pos = any(array(select pos from v))
returning p.queue, (select s.name from @.stream s where s.n = p.stream)
