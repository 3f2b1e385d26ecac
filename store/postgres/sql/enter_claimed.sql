-- Gives claimed messages of the ordered path of streams rows, under the same leases.
-- fill: streams — which streams s, as a condition; its arguments are those of this statement
-- locks: none; cursors, batches and streams are locked
-- out: none
with
  own as materialized (select p.* from @.member p join @.stream s on s.n = p.stream where {streams}),
  entered as (
    insert into @.pending ({{ordered_columns}})
    select
      1, pos, queue, 0, claimed, pos, 1, 1, 0, 1, 0,
      1, owner, until, claimed, claimed, stream, pos, false, false
    from own
  ),
  left_path as (update @.stream s set at = own.pos, has_token = false from own where s.n = own.stream),
  fewer as materialized (select batch, count(*) as n from own group by batch),
  gone as (delete from @.batch b using fewer f where b.n = f.batch and b.remains <= f.n)
update @.batch b set remains = b.remains - f.n
from fewer f
where b.n = f.batch and b.remains > f.n
