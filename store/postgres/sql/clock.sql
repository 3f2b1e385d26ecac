-- Part: the time in nanoseconds since 1970, as exact as PostgreSQL knows it.
(extract(epoch from clock_timestamp()) * 1000000)::bigint * 1000
