-- The hash of each migration that made this store: SHA-256 of its SQL, as hexadecimal digits. Opening
-- compares them one by one with those of the program, and refuses a store of another build before it
-- reads anything else.
alter table @.migration add column hash text;
