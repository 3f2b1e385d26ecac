-- Notes the highest rank that was claimed of each stream.
-- in: streams — numbers of the streams
-- locks: stream
-- out: none
update @.stream s set
  top = greatest(
    s.top,
    (
      select p.rank
      from @.pending p
      where p.stream = s.n and p.stream is not null and p.state = 1
      limit 1
    )
  )
where s.n = any(:streams)
