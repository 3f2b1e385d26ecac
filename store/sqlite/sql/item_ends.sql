-- Writes the outcome of the item by which a redrive moved a letter, unless it has one.
-- in: early — whether an item that waits for its confirmation waits on
-- in: fingerprint — of the letter at its latest death
-- in: same, other — the outcome, by whether that is the fingerprint of the plan
-- in: at — now
-- in: operation — ID of the redrive
-- in: letter — its position
-- in: was — the state of an item without an outcome
-- in: sent — whether an item may wait for its confirmation
update item
set early = iif(:early and state = 'pending', iif(fingerprint = :fingerprint, :same, :other), early),
  state = iif(:early and state = 'pending', state, iif(fingerprint = :fingerprint, :same, :other)),
  at = :at
where operation = (
    select n from operation where id = :operation and event = 'redrive') and letter = :letter
  and (state = :was or :sent and state = 'pending')
