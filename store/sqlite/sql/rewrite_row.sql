-- Writes a message that stays on its way, and that the transaction has read.
-- in: state, owner, until, due, attempts, deliveries, crashes, alone, abandoned — new values
-- in: unread — whether its steps stay, since they cannot be read
-- in: steps, may_pass, reason, patience — new values
-- in: pos — which row
update pending
set state = :state, owner = :owner, until = :until, due = :due, attempts = :attempts,
  deliveries = :deliveries, crashes = :crashes, alone = :alone, abandoned = :abandoned,
  steps = case when :unread then steps else :steps end, may_pass = :may_pass, reason = :reason,
  patience = :patience
where pos = :pos
