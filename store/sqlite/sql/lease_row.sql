-- Leases one row of pending. Package lifecycle has decided the new values.
-- in: owner, until, number, deliveries, attempts, alone, received, gap, claimed — new values
-- in: pos — which row
update pending
set state = 1, owner = :owner, until = :until, number = :number, deliveries = :deliveries,
  attempts = :attempts, alone = :alone, received = :received, may_pass = 0, gap = :gap,
  claimed = :claimed
where pos = :pos
