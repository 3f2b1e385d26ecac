-- Describes the columns of all tables.
-- out: object, text
select 'column ' || t.name || '.' || i.name,
  i.type || case when i."notnull" then ' not null' else '' end
  || coalesce(' default ' || i.dflt_value, '')
  || case when i.pk then ' key ' || i.pk else '' end
from sqlite_schema t
join pragma_table_xinfo(t.name) i
where t.type = 'table' and t.name not like 'sqlite_%'
