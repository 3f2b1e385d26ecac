-- Removes documents that have expired, but for those that others have locked.
-- in: now — in nanoseconds since 1970
-- in: limit — how many at most
-- locks: document
-- out: number
with gone as (
  delete from @.document
  where ctid = any(array(
    select ctid
    from @.document
    where expires > 0 and expires <= :now
    limit :limit
    for update skip locked
  ))
  returning 1
)
select count(*) from gone
