-- Removes the oldest failures but the first from histories that have too many.
-- in: positions — of the messages
-- in: max — how many failures stay
-- locks: none
-- out: none
with old as (
  delete from @.failure f
  using (
    select
      pos, ordinal,
      row_number() over (partition by pos order by ordinal) as nth,
      count(*) over (partition by pos) as n
    from @.failure
    where pos = any(:positions)
  ) h
  where f.pos = h.pos and f.ordinal = h.ordinal and h.nth between 2 and h.n - :max + 1
  returning f.pos, f.ordinal
)
delete from @.attachment a using old where a.pos = old.pos and a.failure = old.ordinal
