-- Notes what became of letters in an operation.
-- in: state, error — new values; what a broker took may have died again already
-- in: group — fingerprint that replaces the planned one, or empty
-- in: at — now
-- in: operation — its ID
-- in: positions — of the letters, as JSON
update item indexed by item_letter
set state = iif(:state = 'unobserved' and early <> '', early, :state), error = :error,
  fingerprint = coalesce(nullif(:group, ''), fingerprint), at = :at
where operation = (select n from operation where id = :operation)
  and letter in (select value from json_each(:positions)) and state = 'pending'
