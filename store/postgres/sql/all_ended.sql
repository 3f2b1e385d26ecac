-- Part: whether all messages of the ordered path of stream s have ended or have rows. Without
-- rows in the stream they end in order: the last one tells.
coalesce(
  (
    select m.pos <= s.at or (select l.pos from @.log l where l.pos = m.pos) is not null
    from @.message m
    where m.ordered_stream = s.n
    order by m.pos desc
    limit 1
  ),
  true
)
