-- Lists letters that died within an hour, the earliest death first.
-- in: from, before — moments
-- in: limit — how many at most
-- out: died, pos, facet
select died, pos, facet
from letter indexed by letter_died
where died >= +:from and died < +:before
order by died asc, pos asc
limit :limit + 0
