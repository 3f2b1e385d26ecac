-- Part: abandoned and patience of member p whose owner vanished. The end of an owner that was told
-- to stop is no crash.
case when not {{owner_was_told}} then {{abandoner}} end,
case when {{owner_was_told}} then jsonb_build_object('free', 1, 'stops', 1, 'stopped_by', {{abandoner}})::text end
