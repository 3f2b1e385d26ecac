-- Part: the columns of a facet of letters. Its number follows from them.
queue, type, status, cause, class, reason, signature, label_low, fingerprint, redrivable, needs_review,
redrives, attempts, crashes
