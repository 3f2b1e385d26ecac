-- Adds a process that claims.
-- in: name, stopping — columns
-- in: now — in nanoseconds since 1970; null: the time of the database
-- locks: none
-- out: n
insert into @.owner (name, stopping, started)
values (:name, :stopping, coalesce(to_timestamp(:now::bigint / 1e9), clock_timestamp()))
returning n
