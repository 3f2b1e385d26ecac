-- Part: leases rows p of pending. A message that is to be judged does not run: it costs no attempt.
-- in: owner — number of the process in the table owner
-- in: until — end of the leases
-- in: now — the time
update @.pending p set
  state = 1,
  owner = :owner,
  until = :until,
  claimed = :now,
  number = p.number + 1,
  deliveries = p.deliveries + 1,
  attempts = p.attempts + (p.abandoned is null)::int,
  received = case p.received when 0 then :now else p.received end
