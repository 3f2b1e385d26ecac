-- Part: success ranges of a queue that ended up to a moment, oldest first, with how many messages
-- are in those before: as many ranges as are needed for max messages.
-- in: queue — number of the queue
-- in: before — what ended up to here
-- in: max — how many messages at most
(
  select *
  from (
    select s.*, (sum(members) over (order by ended, after_tx, after))::bigint - members as before
    from (
      select *
      from @.success_range
      where queue = :queue and ended <= :before
      order by ended, after_tx, after
      limit :max
    ) s
  ) s
  where before < :max
)
