-- Keeps the store's time, unless a later one is kept.
-- in: mark — the time and when it was, as text that begins with it
insert into meta (name, value)
values ('clock', :mark)
on conflict do update set value = excluded.value
where cast(value as integer) <= cast(excluded.value as integer)
