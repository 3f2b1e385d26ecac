-- Announces that an owner without leases will not be heard of for ten minutes.
-- in: owner — number in the table owner
-- locks: owner
-- out: none
update @.owner o set seen = clock_timestamp() + interval '10 min'
where n = :owner and not gone and not {{owner_has_leases}}
