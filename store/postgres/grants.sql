-- What a role needs to run a store, and no more. What is done to letters and queues
-- is recorded for ever: this role adds to the audit and cannot change it.
grant usage on schema SCHEMA to ROLE;
revoke all on all tables in schema SCHEMA from ROLE;
revoke all on all sequences in schema SCHEMA from ROLE;
grant select, insert, update, delete on all tables in schema SCHEMA to ROLE;
revoke update, delete on @.audit from ROLE;
revoke insert, update, delete on @.migration from ROLE;
grant usage on all sequences in schema SCHEMA to ROLE;
grant execute on all functions in schema SCHEMA to ROLE;
