-- Part: the columns of a letter and its message in the order in which scanLetter reads them.
-- whole: select … from letter l join current c on c.pos = l.pos
-- out: current_columns, pos, id, status, cause, class, reason, signature, fingerprint, redrivable,
-- out: needs_review, rule, first_failed, last_failed, died, resolved, operation, note, revision,
-- out: text, last_reason, key_taken
{{current_columns}}, l.pos, l.id, l.status, l.cause, l.class, l.reason, l.signature,
l.fingerprint, l.redrivable, l.needs_review, l.rule, l.first_failed, l.last_failed, l.died,
l.resolved, l.operation, l.note, l.revision, l.text,
(select reason from failure f where f.pos = l.pos order by f.ordinal desc limit 1),
c.dedupe is not null and exists (
select 1 from dedupe d where d.queue = l.queue and d.key = c.dedupe and d.pos <> l.pos)
