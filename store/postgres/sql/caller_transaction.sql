-- Reads how a transaction of the caller is isolated, and of which database it is.
-- locks: none
-- out: isolation, database, cluster
select
  current_setting('transaction_isolation'),
  current_database()::text,
  coalesce((select value from @.meta where name = 'cluster'), '')
