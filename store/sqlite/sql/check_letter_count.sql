-- Rule letter-count: a kind and the counters of its hours count its letters.
-- out: subject, text
select printf('kind %d', k.n), 'has ' || count(l.pos) || ' letters, its row says ' || k.letters
from kind k
left join letter l on l.kind = k.n
group by k.n
having count(l.pos) <> k.letters
union all
select printf('kind %d', k.n),
  'has ' || letters || ' letters, the counters of its hours say ' || sum(coalesce(d.n, 0))
from kind k
left join deaths d on d.kind = k.n
group by k.n
having sum(coalesce(d.n, 0)) <> letters
union all
select printf('kind %d', d.kind),
  'has another number of letters that died in hour ' || d.hour || ' than the counter says'
from deaths d
where d.n <> (
    select count(*) from letter
    where kind = d.kind
      and died >= d.hour * 3600000000000 and died < (d.hour + 1) * 3600000000000)
  or not exists (select 1 from kind k where k.n = d.kind)
