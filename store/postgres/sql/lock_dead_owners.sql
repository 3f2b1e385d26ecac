-- Locks the owners that are dead and still on the list: their leases have to be ended.
-- locks: owner (skip locked)
-- out: owner
select o.n from @.owner o where {{owner_is_dead}} order by o.n for update skip locked
