-- Counts new letters; triggers count letters that change or go.
-- in: queues — numbers of the queues
-- in: types — of the messages
-- in: statuses — of the letters, and so on
-- in: causes — …
-- in: classes — …
-- in: reasons — …
-- in: signatures — …
-- in: low_signatures — in small letters, or empty
-- in: fingerprints — …
-- in: redrivable — …
-- in: needs_review — …
-- in: redrives — of the messages
-- in: attempts — of the messages
-- in: crashes — of the messages
-- in: hours — in which they died
-- in: counts — how many letters
-- locks: none
-- out: none
insert into @.death ({{letter_counted_by}}, letters)
select q, ty, st, ca, cl, re, si, nullif(lo, ''), fp, rd, nr, rs, a, cr, h, n
from unnest(
  :queues::int[], :types::text[], :statuses::text[], :causes::text[], :classes::text[], :reasons::text[],
  :signatures::text[], :low_signatures::text[], :fingerprints::text[], :redrivable::boolean[],
  :needs_review::boolean[], :redrives::int[], :attempts::int[], :crashes::int[], :hours::bigint[],
  :counts::bigint[]
) u (q, ty, st, ca, cl, re, si, lo, fp, rd, nr, rs, a, cr, h, n)
