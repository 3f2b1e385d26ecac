-- Notes that nothing is left in the ordered path of streams.
-- fill: streams — which streams s, as a condition; its arguments are those of this statement
-- locks: none; the streams are locked
-- out: none
update @.stream s set
  has_token = false,
  at = greatest(
    s.at,
    coalesce((select m.pos from @.message m where m.ordered_stream = s.n order by m.pos desc limit 1), 0)
  )
where {streams}
