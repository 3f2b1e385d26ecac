-- Adds a facet that has no letters yet.
-- in: queue, type, status, cause, class, reason, signature, fingerprint, redrivable — columns
-- in: needs_review, redrives, attempts, crashes — columns
insert into facet (queue, type, status, cause, class, reason, signature, fingerprint, redrivable,
  needs_review, redrives, attempts, crashes, letters)
values (:queue, :type, :status, :cause, :class, :reason, :signature, :fingerprint, :redrivable,
  :needs_review, :redrives, :attempts, :crashes, 0)
