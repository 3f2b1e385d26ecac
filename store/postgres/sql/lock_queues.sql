-- Keeps queues from being reordered until the transaction ends.
-- fill: queues — which queues, as a condition; its arguments are those of this statement
-- locks: advisory locks of the queues, shared, by number
-- out: none
select pg_advisory_xact_lock_shared(hashtext('{schema}'), n)
from (select n from @.queue where {queues} order by n) q
