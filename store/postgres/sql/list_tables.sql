-- Lists the tables of a schema that have data of the store.
-- in: schema — its name
-- locks: none
-- out: name
select format('%I.%I', schemaname, tablename)
from pg_tables
where schemaname = :schema and tablename not in ('migration', 'meta')
order by tablename
