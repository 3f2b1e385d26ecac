-- Makes the table that says which migrations were applied.
-- locks: none
-- out: none
create table if not exists @.migration (
  version integer primary key,
  name text not null,
  applied timestamptz not null default clock_timestamp()
);
