-- Reads from which server the transaction IDs of the store are, and which server this is.
-- locks: none
-- out: from, here
select
  coalesce((select value from @.meta where name = 'cluster'), ''),
  (select system_identifier::text from pg_control_system())
