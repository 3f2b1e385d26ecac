-- Writes that a member of a batch succeeded. A second one changes nothing.
-- in: pos, now, claimed — of the message
insert into log (pos, state, ended, received)
values (:pos, 2, :now, :claimed)
on conflict do nothing
