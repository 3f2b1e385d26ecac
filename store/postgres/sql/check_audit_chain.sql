-- Finds what breaks the rule audit-chain: an audit has no gaps, and ends where its chain does.
-- locks: none
-- out: subject, text
select q.name, 'the chain of the audit has gaps, or another end'
from @.chain c
join @.queue q on q.n = c.queue
where (select count(*) from @.entry e where e.queue = c.queue) <> c.number - c.gone_number
  or c.number > c.gone_number
    and not exists (
      select
      from @.entry e
      where e.queue = c.queue and e.last = c.number and e.number = c.number and e.hash = c.hash
    )
  or exists (
    select from @.audit a where a.queue = c.queue and octet_length(a.hashes) <> 32 * cardinality(a.subjects)
  )
