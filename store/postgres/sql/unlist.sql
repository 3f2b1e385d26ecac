-- Takes dead owners off the list; one that still has leases stays and is marked as gone.
-- in: owners — numbers in the table owner
-- locks: owner
-- out: none
with kept as (
  update @.owner o set gone = true where o.n = any(:owners) and {{owner_has_leases}}
)
delete from @.owner o where o.n = any(:owners) and not {{owner_has_leases}}
