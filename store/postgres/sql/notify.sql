-- Notifies the processes that listen to a schema, unless none does. It does not wait for the disk.
-- in: schema — its name
-- in: notes — what they are told
-- locks: advisory lock of the listeners, without waiting
-- out: a row for each note that was sent
select set_config('synchronous_commit', 'off', true), pg_notify(:schema, note)
from unnest(:notes::text[]) note
where not pg_try_advisory_xact_lock(hashtext('nixie listen ' || :schema), 0)
