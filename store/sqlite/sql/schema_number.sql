-- Reads the schema number and whose file it is. One statement reads one snapshot, while another
-- process may make the store.
-- out: version, application, tables
select (select user_version from pragma_user_version),
  (select application_id from pragma_application_id),
  (select count(*) from sqlite_schema where name not like 'sqlite_%')
