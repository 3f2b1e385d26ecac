-- Gives a leased row back to the queue.
-- in: state, due, attempts, crashes, alone, abandoned, steps, may_pass, reason, patience — new values
-- in: pos — which row
update pending
set state = :state, owner = 0, until = 0, due = :due, attempts = :attempts, crashes = :crashes,
  alone = :alone, abandoned = :abandoned, steps = :steps, may_pass = :may_pass, reason = :reason,
  patience = :patience
where pos = :pos
