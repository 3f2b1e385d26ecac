-- Part: the columns of letter in the order in which tx.letter reads them.
-- whole: select … from letter
-- out: pos, queue, id, status, redrivable, needs_review, revision, stream, rank, blocks, facet,
-- out: died
-- out: operation, first_failed, cause
pos, queue, id, status, redrivable, needs_review, revision, stream, rank, blocks, facet, died,
operation, first_failed, cause
