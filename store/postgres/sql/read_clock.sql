-- Reads the time in nanoseconds since 1970.
-- locks: none
-- out: now
select {{clock}}
