-- Notes what became of a letter in an operation.
-- in: state, error — new values; what a broker took may have died again already
-- in: group — fingerprint that replaces the planned one, or empty
-- in: at — now
-- in: operation — its number
-- in: letter — its position
update item
set state = iif(:state = 'unobserved' and early <> '', early, :state), error = :error,
  fingerprint = coalesce(nullif(:group, ''), fingerprint), at = :at
where operation = :operation and letter = :letter and state = 'pending'
