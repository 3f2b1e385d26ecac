-- Writes that a member of a batch succeeded which is known to be unsettled.
-- in: pos, now, claimed — of the message
insert into log (pos, state, ended, received)
values (:pos, 2, :now, :claimed)
