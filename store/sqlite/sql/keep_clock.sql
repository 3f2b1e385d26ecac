-- Keeps the store's time, unless a later one is kept.
-- in: now — the time, as text
insert into meta (name, value)
values ('clock', :now)
on conflict do update set value = excluded.value
where cast(value as integer) < cast(excluded.value as integer)
