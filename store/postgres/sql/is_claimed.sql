-- Part: whether message f of the ordered path of stream s is in a batch.
exists (
  select
  from @.batch b
  where b.queue = s.queue and b.after_tx = '0' and b.after <= f.pos and b.last >= f.pos and f.pos = any(b.positions)
)
