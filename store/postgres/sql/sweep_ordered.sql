-- Gives messages of batches of the ordered path rows, in which they wait until the heads of
-- their streams are recomputed.
-- in: batches — numbers of the batches, which are locked
-- in: now — the time
-- in: positions — of the messages, whose streams are locked
-- locks: none
-- out: none
with
  own as materialized (
    select p.* from @.member p where p.batch = any(:batches) and p.pos = any(:positions)
  ),
  entered as (
    insert into @.pending ({{ordered_columns}}, abandoned, patience)
    select
      6, p.pos, p.queue, 0, :now, p.pos, 0, 1, (not {{owner_was_told}})::int, 1, 0,
      1, 0, 0, p.claimed, p.claimed, p.stream, p.pos, false, false, {{member_vanished}}
    from own p
  ),
  fewer as materialized (select batch, count(*) as n from own group by batch),
  gone as (delete from @.batch b using fewer f where b.n = f.batch and b.remains <= f.n)
update @.batch b set remains = b.remains - f.n
from fewer f
where b.n = f.batch and b.remains > f.n
