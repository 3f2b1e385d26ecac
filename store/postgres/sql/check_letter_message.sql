-- Finds what breaks the rule letter-message: letter and message agree.
-- locks: none
-- out: subject, text
select l.id::text, 'is ' || l.status || ' and its message does not agree'
from @.letter l
left join lateral (select c.pos, c.state from @.current c where c.pos = l.pos offset 0) c on true
where c.pos is null
  or (c.state in (0, 1)) <> (l.status = 'redriving')
  or l.status in ('open', 'review', 'quarantined') and c.state <> 5
  or (l.resolved = 0) <> (l.status not in ('resolved', 'discarded'))
