-- Rule letter-count: a facet and the counters of its hours count its letters.
-- out: subject, text
select printf('facet %d', f.n), 'has ' || count(l.pos) || ' letters, its row says ' || f.letters
from facet f
left join letter l on l.facet = f.n
group by f.n
having count(l.pos) <> f.letters
union all
select printf('facet %d', f.n),
  'has ' || letters || ' letters, the counters of its hours say ' || sum(coalesce(d.n, 0))
from facet f
left join deaths d on d.facet = f.n
group by f.n
having sum(coalesce(d.n, 0)) <> letters
union all
select printf('facet %d', d.facet),
  'has another number of letters that died in hour ' || d.hour || ' than the counter says'
from deaths d
where d.n <> (
    select count(*) from letter
    where facet = d.facet
      and died >= d.hour * 3600000000000 and died < (d.hour + 1) * 3600000000000)
  or not exists (select 1 from facet f where f.n = d.facet)
