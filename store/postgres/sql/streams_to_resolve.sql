-- Names the streams to which messages of letters may be appended.
-- in: ids — IDs of the letters
-- locks: none
-- out: queue, name
select m.queue, m.stream
from @.message m
join @.queue q on q.n = m.queue
where m.pos = any(array({{letters_with}}))
  and m.stream is not null
  and q.settings->>'order' in ('strict', 'relaxed')
