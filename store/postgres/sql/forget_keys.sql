-- Removes old keys of the inbox.
-- in: before — what was told up to here
-- in: max — how many at most
-- locks: inbox (skip locked)
-- out: at, of each
delete from @.inbox
where ctid = any(array(
  select ctid from @.inbox where at <= :before limit :max for update skip locked
))
returning at
