-- Writes that a member of a batch succeeded. The caller knows that it is not settled.
-- in: pos, now, claimed — of the message
insert into log (pos, state, ended, received)
values (:pos, 2, :now, :claimed)
