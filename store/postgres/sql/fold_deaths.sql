-- Adds the many rows by which transactions counted letters to the kept row of their facet and
-- hour. Rows that another process folds are skipped.
-- locks: death (skip locked), then kept rows of death by facet and hour
-- out: none
with gone as (
  delete from @.death
  where ctid = any(array(select ctid from @.death where not kept limit 20000 for update skip locked))
  returning *
)
insert into @.death as d ({{letter_counted_by}}, letters, kept)
select {{letter_counted_by}}, sum(letters), true
from gone
group by {{letter_counted_by}}, facet
having sum(letters) <> 0
order by facet, hour
on conflict (facet, hour) where kept do update set letters = d.letters + excluded.letters
