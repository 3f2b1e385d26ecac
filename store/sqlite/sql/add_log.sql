-- Adds the row of log of a message that ended in its clean first generation.
-- in: pos, state, ended, received — columns
insert into log (pos, state, ended, received)
values (:pos, :state, :ended, :received)
