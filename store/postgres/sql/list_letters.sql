-- Lists letters, newest death first: the first of each queue or facet by its index, and of these
-- the first.
-- fill: parts — the queues q or facets k
-- fill: letters — the tables that the filter reads, with l for the letter
-- fill: part — whether l belongs to the part
-- fill: where — the filter; its arguments are those of this statement
-- fill: limit — how many at most
-- locks: none
-- out: shown_columns, id, status, cause, class, reason, signature, fingerprint, redrivable,
-- out: needs_review, rule, first_failed, last_failed, died, resolved, operation, note, revision, text,
-- out: key_taken
select
  {{shown_columns}},
  l.id, l.status, l.cause, l.class, l.reason, l.signature, l.fingerprint, l.redrivable, l.needs_review, l.rule,
  l.first_failed, l.last_failed, l.died, l.resolved, l.operation, l.note, l.revision, l.text,
  c.dedupe is not null
    and exists (select from @.dedupe d where d.queue = l.queue and d.key = c.dedupe and d.pos <> l.pos)
from (
  select l.pos
  from {parts}
  cross join lateral (
    select l.pos, l.died
    from {letters}
    where {part} and {where}
    order by l.died desc, l.pos desc
    limit {limit}
  ) l
  order by l.died desc, l.pos desc
  limit {limit}
) found
cross join lateral (select * from @.letter where pos = found.pos offset 0) l
cross join lateral (select * from @.current c where c.pos = l.pos offset 0) c
order by l.died desc, l.pos desc
