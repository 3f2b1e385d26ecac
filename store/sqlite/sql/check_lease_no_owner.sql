-- Rule lease-no-owner: each lease has a registered owner.
-- out: subject, text
select lower(hex(m.id)), 'is leased by owner ' || p.owner || ', who is not registered'
from pending p
left join message m on m.pos = p.pos
where p.state = 1 and not exists (select 1 from owner o where o.n = p.owner)
union all
select printf('batch %d', b.n), 'is held by owner ' || b.owner || ', who is not registered'
from batch b
where not exists (select 1 from owner o where o.n = b.owner)
