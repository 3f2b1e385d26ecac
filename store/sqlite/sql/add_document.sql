-- Adds a document. Its number is its revision, which no other had.
-- in: space, key, value, label, due, expires, owner, until, at, by, texts — columns
insert into document (space, key, value, label, due, expires, owner, until, at, by, texts)
values (:space, :key, :value, :label, :due, :expires, :owner, :until, :at, :by, :texts)
