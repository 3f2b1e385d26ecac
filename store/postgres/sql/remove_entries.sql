-- Removes the oldest entries of an audit, and what was noted of letters whose purge they tell.
-- in: queue — number of the queue
-- in: number — of the last entry that goes
-- locks: none
-- out: none
with gone as (
  delete from @.audit where queue = :queue and number <= :number returning event, subjects, at
)
delete from @.purged p
using (select unnest(subjects) as letter, at from gone where event = 'purge') g
where p.letter = g.letter and p.at <= g.at
