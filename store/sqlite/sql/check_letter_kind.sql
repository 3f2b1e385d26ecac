-- Rule letter-kind: a letter is what its kind says.
-- out: subject, text
select lower(hex(l.id)), 'is not what its kind says'
from letter l
join current c on c.pos = l.pos
left join kind k on k.n = l.kind
where k.n is null or k.queue <> l.queue or k.type is not coalesce(c.type, '')
  or k.status <> l.status or k.cause <> l.cause or k.class <> l.class or k.reason <> l.reason
  or k.signature <> l.signature or k.fingerprint <> l.fingerprint
  or k.redrivable <> l.redrivable or k.needs_review <> l.needs_review or k.redrives <> c.redrives
  or (k.attempts, k.crashes) <> (
    iif(k.status = 'redriving', 0, c.attempts), iif(k.status = 'redriving', 0, c.crashes))
  or l.flow is not c.stream
