-- Notes what became of a letter in an operation.
-- in: ids — ID of the letter
-- in: operation — ID of the operation
-- in: state — of the item, which is locked
-- in: group — fingerprint that replaces the planned one, or empty
-- in: at — now
-- locks: none
-- out: none
update @.item i
set
  state = case :state::text when 'unobserved' then coalesce(i.early, :state) else :state end,
  fingerprint = coalesce(nullif(:group, ''), i.fingerprint),
  at = :at
from @.operation o
where o.id = :operation and i.operation = o.n and i.letter = any(array({{letters_with}}))
