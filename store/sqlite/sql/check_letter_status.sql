-- Rule letter-status: the status of a letter fits the state of its message.
-- out: subject, text
select lower(hex(l.id)), 'is ' || l.status || ' while its message is in state ' || c.state
from letter l
join current c on c.pos = l.pos
where l.status in ('open', 'review', 'quarantined') and c.state <> 5
  or l.status = 'redriving' and c.state not in (0, 1)
  or l.status not in ('open', 'review', 'quarantined', 'redriving', 'resolved', 'discarded')
