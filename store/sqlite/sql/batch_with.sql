-- Reads the lease of a message that has no row of its own.
-- in: pos — of the message
-- out: owner, until, claimed
select owner, until, claimed from batch where first <= :pos and last >= :pos
