-- Part: whether something is in stream s.
(s.mixed or not {{all_ended}})
