-- Keeps the newest pruned entry of an audit chain.
-- in: queue, number, hash — columns
insert into anchor (queue, number, hash)
values (:queue, :number, :hash)
on conflict do update set number = excluded.number, hash = excluded.hash
