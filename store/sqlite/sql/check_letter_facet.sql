-- Rule letter-facet: a letter has the properties of its facet.
-- out: subject, text
select lower(hex(l.id)), 'is not what its facet says'
from letter l
join current c on c.pos = l.pos
left join facet f on f.n = l.facet
where f.n is null or f.queue <> l.queue or f.type is not coalesce(c.type, '')
  or f.status <> l.status or f.cause <> l.cause or f.class <> l.class or f.reason <> l.reason
  or f.signature <> l.signature or f.fingerprint <> l.fingerprint
  or f.redrivable <> l.redrivable or f.needs_review <> l.needs_review or f.redrives <> c.redrives
  or (f.attempts, f.crashes) <> (
    iif(f.status = 'redriving', 0, c.attempts), iif(f.status = 'redriving', 0, c.crashes))
  or l.flow is not c.stream
