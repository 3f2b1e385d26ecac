-- Keeps what a message said before it is edited first.
-- in: pos — of the message, whose letter is locked
-- in: now — the time
-- in: by — who edits it
-- locks: none
-- out: none
insert into @.original (pos, body, hash, headers, at, by)
select pos, body, hash, headers, :now, :by from @.message where pos = :pos
on conflict do nothing
