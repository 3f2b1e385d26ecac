-- Gives a leased row back to its queue, since the holder has vanished.
-- in: state, due, attempts, crashes, abandoned, patience — new values
-- in: pos — which row
update pending
set state = :state, owner = 0, until = 0, due = :due, attempts = :attempts, crashes = :crashes,
  abandoned = :abandoned, patience = :patience
where pos = :pos and state = 1
