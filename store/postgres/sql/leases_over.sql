-- Part: whether a lease ended between c.since and c.now, or its owner is dead.
(
  exists (select from @.pending where until > c.since and until <= c.now and until > 0)
  or exists (select from @.batch where until > c.since and until <= c.now)
  or exists (select from @.owner o where {{owner_is_dead}})
)
