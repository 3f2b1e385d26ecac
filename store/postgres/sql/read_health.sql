-- Reads the version of the server and the size of the schema.
-- in: schema — its name
-- locks: none
-- out: version, bytes
select
  'PostgreSQL ' || current_setting('server_version'),
  coalesce(
    (
      select sum(pg_total_relation_size(c.oid))
      from pg_class c
      join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = :schema and c.relkind in ('r', 'S')
    ),
    0
  )::bigint
