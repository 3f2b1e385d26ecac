-- Takes the shared locks of queues if no operator is reordering one of them, and remembers whether
-- it got all, for insert_known.
-- in: queues — numbers of the queues
-- locks: advisory locks of the queues, shared, without waiting
-- out: none
select set_config(
  'nixie.held',
  bool_and(pg_try_advisory_xact_lock_shared(hashtext('{schema}'), n))::text,
  true
)
from unnest(:queues::int[]) n
