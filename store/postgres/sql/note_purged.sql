-- Notes which letters are purged.
-- in: positions — of the letters
-- in: now — the time
-- locks: purged
-- out: none
insert into @.purged (letter, message, queue, at)
select l.id, m.id, l.queue, :now
from @.letter l
join @.message m on m.pos = l.pos
where l.pos = any(:positions)
on conflict (letter) do update set message = excluded.message, queue = excluded.queue, at = excluded.at
