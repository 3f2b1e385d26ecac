-- Reads a facet.
-- in: n — its number
-- out: queue, type, status, cause, class, reason, signature, fingerprint, redrivable, needs_review,
-- out: redrives, attempts, crashes
select queue, type, status, cause, class, reason, signature, fingerprint, redrivable,
  needs_review, redrives, attempts, crashes
from facet
where n = :n
