-- Takes members out of batches; batches without any are removed.
-- in: batches — numbers of the batches, which are locked
-- in: counts — how many members leave each
-- locks: none
-- out: none
with
  u as materialized (select * from unnest(:batches::bigint[], :counts::bigint[]) u (n, k)),
  gone as (
    delete from @.batch b
    where b.n = any(:batches) and b.remains <= (select k from u where u.n = b.n)
  )
update @.batch b set remains = b.remains - (select k from u where u.n = b.n)
where b.n = any(:batches) and b.remains > (select k from u where u.n = b.n)
