-- Writes what an operator changed about a queued message.
-- in: due, attempts, deliveries, crashes, alone, abandoned, may_pass, patience — new values
-- in: pos — which row
update pending
set due = :due, attempts = :attempts, deliveries = :deliveries, crashes = :crashes, alone = :alone,
  abandoned = :abandoned, may_pass = :may_pass, patience = :patience
where pos = :pos
