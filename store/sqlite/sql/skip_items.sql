-- Marks the pending items of a letter that is removed as skipped, but not that of the operation
-- which removes it.
-- in: letter — its position
-- in: operation — ID of the operation, or null
update item
set state = 'skipped', error = 'the letter was removed'
where letter = :letter and state = 'pending'
  and operation <> coalesce((select n from operation where id = :operation), 0)
