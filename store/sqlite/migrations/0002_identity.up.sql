-- The hash of each migration that made this store. Opening compares them one by one with those of
-- the program, and refuses a store of another build before it reads anything else. The name is long
-- because callers may have tables of their own in the file.
create table nixie_migration (
  version integer primary key,
  hash    text not null                   -- SHA-256 of its SQL, as hexadecimal digits
) strict;
