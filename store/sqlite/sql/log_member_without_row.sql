-- Writes what log_member writes, unless the message has a row of its own.
-- in: pos, now, claimed — of the message
insert into log (pos, state, ended, received)
select :pos, 2, :now, :claimed
where not exists (select 1 from pending where pos = :pos)
on conflict do nothing
