-- Inserts entries of an audit that differ only in their subjects as one row.
-- in: queue — number of the queue
-- in: number — of the last entry
-- in: at — when
-- in: actor — who did it
-- in: event — what happened
-- in: reason — why
-- in: subjects — IDs of letters or messages, in the order of the chain
-- in: hashes — of the entries, one behind the other
-- in: operation — that they are part of, or null
-- locks: none
-- out: none
insert into @.audit (queue, number, at, actor, event, reason, subjects, hashes, operation)
values (
  :queue, :number, :at, :actor, :event, :reason,
  (
    select array_agg(nullif(u.id, '00000000-0000-0000-0000-000000000000') order by u.i)
    from unnest(:subjects::uuid[]) with ordinality u (id, i)
  ),
  :hashes, :operation
)
