-- Finds a facet.
-- in: queue, type, status, cause, class, reason, signature, fingerprint, redrivable — what it is
-- in: needs_review, redrives, attempts, crashes — what it is
-- out: n
select n
from facet
where queue = :queue and type = :type and status = :status and cause = :cause and class = :class
  and reason = :reason and signature = :signature and fingerprint = :fingerprint
  and redrivable = :redrivable and needs_review = :needs_review and redrives = :redrives
  and attempts = :attempts and crashes = :crashes
