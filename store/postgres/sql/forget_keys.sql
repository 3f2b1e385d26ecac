-- Removes old keys of the inbox.
-- in: before — what was told up to here
-- in: max — how many at most
-- locks: inbox (skip locked)
-- out: at, of each
delete from @.inbox
where (scope, key) in (
  select scope, key from @.inbox where at <= :before limit :max for update skip locked
)
returning at
