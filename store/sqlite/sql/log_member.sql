-- Writes that a member of a batch succeeded. It changes nothing if the message has ended.
-- in: pos, now, claimed — of the message
insert into log (pos, state, ended, received)
values (:pos, 2, :now, :claimed)
on conflict do nothing
