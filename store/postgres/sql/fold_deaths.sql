-- Adds the many rows by which transactions counted letters to the kept rows of their facet, by hour and
-- for all hours. Rows that another process folds are skipped.
-- locks: death (skip locked), then its kept rows of one kind and then of the other, by facet and hour
-- out: count
with gone as (
  delete from @.death
  where ctid = any(array(select ctid from @.death where whole and not kept limit 20000 for update skip locked))
  returning *
),
hours as (
  insert into @.death as d ({{letter_facet}}, hour, letters, kept, whole)
  select {{letter_facet}}, hour, sum(letters), true, false
  from gone
  group by {{letter_facet}}, hour, facet
  having sum(letters) <> 0
  order by facet, hour
  on conflict (facet, hour) where kept and hour is not null do update set letters = d.letters + excluded.letters
),
sums as (
  insert into @.death as d ({{letter_facet}}, letters, kept)
  select {{letter_facet}}, sum(letters), true
  from gone
  group by {{letter_facet}}, facet
  having sum(letters) <> 0
  order by facet
  on conflict (facet) where kept and hour is null do update set letters = d.letters + excluded.letters
)
select count(*) from gone
