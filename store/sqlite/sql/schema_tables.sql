-- Lists the tables that hold data.
-- out: name
select name
from sqlite_schema
where type = 'table' and name not like 'sqlite_%' and name not in ('meta', 'nixie_migration')
order by name
