-- Removes all tokens, and gives those anew by which the heads of streams are to be recomputed.
-- locks: none; the tables are locked
-- out: none
with gone as (delete from @.token returning *)
insert into @.token (queue, streams, positions)
select g.queue, array_agg(u.stream), array_agg(u.pos)
from gone g
cross join lateral unnest(g.streams, g.positions) u (stream, pos)
cross join lateral @.resolve_token(u.stream, -u.pos) f
where u.pos < 0 and f.pos is null
group by g.queue
