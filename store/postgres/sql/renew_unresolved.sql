-- Removes all tokens, and gives those anew by which the heads of streams are to be recomputed.
-- locks: none; the tables are locked
-- out: none
with gone as (delete from @.turn returning *)
insert into @.turn (queue, streams, places)
select g.queue, array_agg(u.stream), array_agg(u.place)
from gone g
cross join lateral unnest(g.streams, g.places) u (stream, place)
cross join lateral @.found(u.stream, -u.place) f
where u.place < 0 and f.pos is null
group by g.queue
