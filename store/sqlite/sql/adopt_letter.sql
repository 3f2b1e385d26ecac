-- Writes a letter that was adopted from elsewhere.
-- in: id, pos, facet, queue, status, cause, class, reason, signature, fingerprint — columns
-- in: redrivable, needs_review, rule, text, first_failed, last_failed, died, operation — columns
-- in: note, revision, flow, rule_sum, note_sum — columns
insert into letter (id, pos, facet, queue, status, cause, class, reason, signature, fingerprint,
  redrivable, needs_review, rule, text, first_failed, last_failed, died, resolved, operation, note,
  revision, flow, rule_sum, note_sum)
values (:id, :pos, :facet, :queue, :status, :cause, :class, :reason, :signature, :fingerprint,
  :redrivable, :needs_review, :rule, :text, :first_failed, :last_failed, :died, 0, :operation,
  :note,
  :revision, :flow, :rule_sum, :note_sum)
