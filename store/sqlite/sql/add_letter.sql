-- Adds the letter of a message that has died.
-- in: pos, id, facet, queue, status, cause, class, reason, signature, fingerprint — columns
-- in: redrivable, needs_review, rule, text, first_failed, last_failed, died, note, stream — columns
-- in: rank, blocks, flow, rule_sum, note_sum — columns
insert into letter (pos, id, facet, queue, status, cause, class, reason, signature, fingerprint,
  redrivable, needs_review, rule, text,
  first_failed, last_failed, died, note, stream, rank, blocks, flow, rule_sum, note_sum)
values (:pos, :id, :facet, :queue, :status, :cause, :class, :reason, :signature, :fingerprint,
  :redrivable, :needs_review, :rule, :text,
  :first_failed, :last_failed, :died, :note, :stream, :rank, :blocks, :flow, :rule_sum, :note_sum)
