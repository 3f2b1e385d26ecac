-- Makes one row of the many that transactions added to the counters of what ended. Rows that
-- another process folds are skipped.
-- locks: counter (skip locked)
-- out: none
with gone as (
  delete from @.counter
  where ctid = any(array(select ctid from @.counter limit 20000 for update skip locked))
  returning *
)
insert into @.counter (queue, state, reason, n)
select queue, state, reason, sum(n) from gone group by 1, 2, 3
