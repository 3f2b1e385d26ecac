-- Reads who owns a schema, or the database if there is no such schema.
-- in: schema — its name
-- locks: none
-- out: owner
select pg_get_userbyid(coalesce(
  (select nspowner from pg_namespace where nspname = :schema),
  (select datdba from pg_database where datname = current_database())
))
