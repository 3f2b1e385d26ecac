-- What a role needs to enqueue by SQL, and no more: no right on a table.
grant usage on schema SCHEMA to ROLE;
grant execute on function
  @.enqueue(text, bytea, text, text, text, text, interval, jsonb, integer, interval, text, boolean),
  @.enqueue(text, text, text, text, text, text, interval, jsonb, integer, interval, text, boolean)
to ROLE;
