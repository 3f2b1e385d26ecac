-- Reads when the lease ends that ends first, 0 if there is none.
-- locks: none
-- out: until
select coalesce(
  least((select min(until) from @.pending where until > 0), (select min(until) from @.batch)),
  0
)
