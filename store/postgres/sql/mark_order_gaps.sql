-- Marks which claimed rows overtook others: an earlier message of the stream waits or is dead, or
-- a later one was claimed before.
-- in: positions — of the rows
-- locks: pending; the streams are locked
-- out: pos
update @.pending p set gap = true
where p.pos = any(:positions)
  and not p.gap
  and (
    p.rank < (select s.top from @.stream s where s.n = p.stream)
    or exists (select from @.pending o where o.stream = p.stream and o.rank < p.rank)
    or exists (select from @.letter l where l.stream = p.stream and l.rank < p.rank)
  )
returning p.pos
