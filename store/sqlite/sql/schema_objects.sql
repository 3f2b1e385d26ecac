-- Describes tables, indexes and views. Indexes that SQLite makes by itself have no text.
-- out: object, text
select type || ' ' || name, case type when 'table' then '' else coalesce(sql, '') end
from sqlite_schema
where name not like 'sqlite_%'
