-- Lets ranges begin at the transactions of this server.
-- locks: none; the table is locked
-- out: none
update @.cursor set tx = pg_current_xact_id(), pos = -1, late = '{}', done = '{}', low = 0
