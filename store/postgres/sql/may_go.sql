-- Part: whether row p may be claimed. One that may pass the head of its stream waits as soon as
-- that head is due and no letter before it blocks the stream.
-- in: now — the time
(
  not p.may_pass
  or not exists (
    select from (
      select h.pos, h.due, h.rank from @.pending h where h.stream = p.stream order by h.rank limit 1
    ) h
    where h.pos <> p.pos
      and h.due <= :now
      and not exists (select from @.letter l where l.stream = p.stream and l.blocks and l.rank < h.rank)
      and exists (select from @.queue q where q.n = p.queue and q.strict)
  )
)
