-- Marks the pending items of a removed letter as skipped, except those of the operation that
-- removes it.
-- in: at — now
-- in: letter — its position
-- in: operation — ID of the operation, or null
update item
set state = 'skipped', error = 'the letter was removed', at = :at
where letter = :letter and state = 'pending'
  and operation <> coalesce((select n from operation where id = :operation), 0)
