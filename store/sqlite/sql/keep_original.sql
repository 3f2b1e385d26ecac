-- Keeps a message as it was before its first edit.
-- in: at, by, texts — columns
-- in: pos — of the message
insert into original (pos, body, hash, headers, at, by, texts)
select pos, body, hash, headers, :at, :by, :texts from message where pos = :pos
on conflict do nothing
