-- Rule stream-two-leases: of each stream at most one message is leased, and no other one can be
-- handed out then.
-- out: subject, text
select s.name, 'has ' || count(*) || ' messages out at once'
from pending p
join stream s on s.n = p.stream
where p.state = 1
group by s.n
having count(*) > 1
union all
select s.name, 'hands out another message while one is out'
from stream s
where exists (select 1 from pending p where p.stream = s.n and p.state = 1)
  and exists (select 1 from pending p where p.stream = s.n and p.state = 0)
