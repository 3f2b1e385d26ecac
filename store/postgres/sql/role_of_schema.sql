-- Reads who owns a schema, and whether a role may do all that the owner may.
-- in: schema — its name
-- in: role — its name
-- locks: none
-- out: owner, owns; no row if there is no such role
select pg_get_userbyid(n.nspowner), pg_has_role(:role, n.nspowner, 'member')
from pg_namespace n
join pg_roles r on r.rolname = :role
where n.nspname = :schema
