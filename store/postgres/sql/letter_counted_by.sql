-- Part: what letters are counted by, but for the facet, which follows from the others.
queue, type, status, cause, class, reason, signature, label_low, fingerprint, redrivable, needs_review,
redrives, attempts, crashes, hour
