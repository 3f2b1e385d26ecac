-- Writes another death of a letter's message.
-- in: facet, status, cause, class, reason, signature, fingerprint, redrivable — new values
-- in: needs_review, rule, rule_sum, first_failed, last_failed, died, resolved — new values
-- in: operation, note, note_sum, revision, stream, rank, blocks — new values
-- in: pos — of the letter
update letter
set facet = :facet, status = :status, cause = :cause, class = :class, reason = :reason,
  signature = :signature, fingerprint = :fingerprint, redrivable = :redrivable,
  needs_review = :needs_review, rule = :rule, rule_sum = :rule_sum, first_failed = :first_failed,
  last_failed = :last_failed, died = :died, resolved = :resolved, operation = :operation,
  note = :note, note_sum = :note_sum, revision = :revision, stream = :stream, rank = :rank,
  blocks = :blocks
where pos = :pos
