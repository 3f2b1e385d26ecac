-- Notes what became of letters in operations. The items are pending, so the index of what waits
-- finds them: before the server has analyzed the table, the primary key looks as good to it, and
-- would read all items of the operation for each letter.
-- in: letters — positions of the letters, whose items are locked
-- in: operations — IDs of the operations, one for each letter
-- in: states — of the items
-- in: groups — fingerprints that replace the planned ones, or empty
-- in: at — now
-- locks: none
-- out: none
update @.item i
set
  state = case u.state when 'unobserved' then coalesce(i.early, u.state) else u.state end,
  fingerprint = coalesce(nullif(u.fingerprint, ''), i.fingerprint),
  at = :at
from unnest(:letters::bigint[], :operations::uuid[], :states::text[], :groups::text[]) u (letter, operation, state, fingerprint)
join @.operation o on o.id = u.operation
where i.operation + 0 = o.n and i.letter = u.letter and i.state = 'pending'
