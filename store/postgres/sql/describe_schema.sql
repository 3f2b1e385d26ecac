-- Describes everything in a schema: what it is called, and how it is. What people may tune without
-- harm, such as fill factors, is left out, and so are the names that PostgreSQL gives to columns of
-- views without one: they are written out in a dump, and so in the store that is restored from it.
-- in: schema — its name
-- locks: none
-- out: thing, how
select 'table ' || c.relname, case c.relpersistence when 'p' then 'logged' else 'not logged' end
from pg_class c
where c.relnamespace = :schema::regnamespace and c.relkind in ('r', 'p')
union all
select
  'view ' || c.relname,
  regexp_replace(pg_get_viewdef(c.oid), '(::(text|bigint)) AS (text|int8)\M', '\1', 'g')
from pg_class c
where c.relnamespace = :schema::regnamespace and c.relkind in ('v', 'm')
union all
select
  'sequence ' || c.relname,
  format_type(s.seqtypid, null) || ' by ' || s.seqincrement || case when s.seqcycle then ' cycle' else '' end
from pg_class c
join pg_sequence s on s.seqrelid = c.oid
where c.relnamespace = :schema::regnamespace
union all
select
  'column ' || c.relname || '.' || a.attname,
  concat_ws(
    ' ',
    format_type(a.atttypid, a.atttypmod),
    case when a.attnotnull then 'not null' end,
    case when a.attidentity <> '' then 'identity ' || a.attidentity::text end,
    'default ' || pg_get_expr(d.adbin, d.adrelid)
  )
from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
where c.relnamespace = :schema::regnamespace and c.relkind in ('r', 'p')
union all
select
  'index ' || c.relname,
  pg_get_indexdef(c.oid)
    || case when i.indisvalid then '' else ' (not valid: its making was interrupted)' end
from pg_class c
join pg_index i on i.indexrelid = c.oid
where c.relnamespace = :schema::regnamespace
union all
select 'constraint ' || c.relname || '.' || k.conname, pg_get_constraintdef(k.oid)
from pg_constraint k
join pg_class c on c.oid = k.conrelid
where c.relnamespace = :schema::regnamespace and k.contype <> 'n'
union all
select 'trigger ' || c.relname || '.' || t.tgname, pg_get_triggerdef(t.oid) || ' ' || t.tgenabled::text
from pg_trigger t
join pg_class c on c.oid = t.tgrelid
where c.relnamespace = :schema::regnamespace and not t.tgisinternal
union all
select 'function ' || p.proname || '(' || oidvectortypes(p.proargtypes) || ')', pg_get_functiondef(p.oid)
from pg_proc p
where p.pronamespace = :schema::regnamespace
