-- Part: whether a dead message holds up the first message of stream s.
exists (
  select
  from @.letter l
  where l.stream = s.n and l.blocks and (first.pos is null or l.rank < first.rank)
)
