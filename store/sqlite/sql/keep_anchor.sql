-- Keeps where the rest of a pruned audit chain begins.
-- in: queue, number, hash — columns
insert into anchor (queue, number, hash)
values (:queue, :number, :hash)
on conflict do update set number = excluded.number, hash = excluded.hash
