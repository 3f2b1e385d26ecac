-- Reads whether a schema has a table of migrations, and whether that is ours.
-- in: schema — its name
-- locks: none
-- out: exists, ours
select
  count(*) > 0,
  count(*) filter (
    where exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'applied')
  ) > 0
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where n.nspname = :schema and c.relname = 'migration'
