-- Writes that 32 members of a batch succeeded whose positions follow each other. A statement for
-- each costs three times as much.
-- in: pos, now, claimed — of the first message
insert into log (pos, state, ended, received)
values
  (:pos, 2, :now, :claimed), (:pos+1, 2, :now, :claimed), (:pos+2, 2, :now, :claimed),
  (:pos+3, 2, :now, :claimed), (:pos+4, 2, :now, :claimed), (:pos+5, 2, :now, :claimed),
  (:pos+6, 2, :now, :claimed), (:pos+7, 2, :now, :claimed), (:pos+8, 2, :now, :claimed),
  (:pos+9, 2, :now, :claimed), (:pos+10, 2, :now, :claimed), (:pos+11, 2, :now, :claimed),
  (:pos+12, 2, :now, :claimed), (:pos+13, 2, :now, :claimed), (:pos+14, 2, :now, :claimed),
  (:pos+15, 2, :now, :claimed), (:pos+16, 2, :now, :claimed), (:pos+17, 2, :now, :claimed),
  (:pos+18, 2, :now, :claimed), (:pos+19, 2, :now, :claimed), (:pos+20, 2, :now, :claimed),
  (:pos+21, 2, :now, :claimed), (:pos+22, 2, :now, :claimed), (:pos+23, 2, :now, :claimed),
  (:pos+24, 2, :now, :claimed), (:pos+25, 2, :now, :claimed), (:pos+26, 2, :now, :claimed),
  (:pos+27, 2, :now, :claimed), (:pos+28, 2, :now, :claimed), (:pos+29, 2, :now, :claimed),
  (:pos+30, 2, :now, :claimed), (:pos+31, 2, :now, :claimed)
