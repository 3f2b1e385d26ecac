-- Reads which transactions have ended.
-- in: transactions — their IDs
-- locks: none
-- out: transaction
select x
from unnest(:transactions::bigint[]) x
where pg_visible_in_snapshot(x::text::xid8, pg_current_snapshot())
