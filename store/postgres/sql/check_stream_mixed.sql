-- Finds what breaks the rule stream-mixed: a stream knows whether it has rows or letters.
-- locks: none
-- out: subject, text
select s.name, 'does not know whether it has rows or letters'
from (select s.*, q.strict from @.stream s join @.queue q on q.n = s.queue) s
{{join_first}}
where s.mixed <> (
  exists (select from @.pending p where p.stream = s.n)
  or exists (select from @.letter l where l.stream = s.n)
  or coalesce(first.rowless and first.pos < s.top, false)
)
