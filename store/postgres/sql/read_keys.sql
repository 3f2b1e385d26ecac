-- Reads which messages hold dedupe keys.
-- fill: keys — a query for queues and keys; its arguments are those of this statement
-- locks: none
-- out: queue, key, pos, id, hash, state of its row or -1, deliveries
select d.queue, d.key, m.pos, m.id, m.hash, coalesce(p.state, -1), coalesce(p.deliveries, 0)
from @.dedupe d
join @.message m on m.pos = d.pos
left join @.pending p on p.pos = d.pos
where (d.queue, d.key) in ({keys})
order by d.queue, d.key
