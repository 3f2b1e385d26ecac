-- Reads letters.
-- fill: where — which letters, as a condition; its arguments are those of this statement
-- locks: none
-- out: pos, queue, type, redrives, attempts, crashes, id, status, cause, class, reason, signature,
-- out: fingerprint, redrivable, needs_review, rule, text, first_failed, last_failed, died, resolved,
-- out: operation, note, revision, in_stream, rank, blocks, notes
select
  pos, queue, type, redrives, attempts, crashes, id, status, cause, class, reason, signature, fingerprint,
  redrivable, needs_review, rule, text, first_failed, last_failed, died, resolved, operation, note, revision,
  stream is not null, rank, blocks, (select count(*) from @.note where note.letter = letter.pos)
from @.letter
where {where}
