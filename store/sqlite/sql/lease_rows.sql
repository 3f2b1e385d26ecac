-- Leases 32 rows of pending that have no stream.
-- in: owner, until, now — of the lease
update pending
set state = 1, owner = :owner, until = :until, number = number + 1, deliveries = deliveries + 1,
  attempts = attempts + (abandoned is null), received = iif(received = 0, :now, received),
  may_pass = 0, claimed = :now
where pos in {{positions}}
