-- Gives messages of the ordered path of streams that wait rows.
-- fill: streams — which streams s, as a condition; its arguments are those of this statement
-- locks: none; cursors, batches and streams are locked
-- out: none
insert into @.pending ({{ordered_columns}})
select 6, {{ordered_values}}
from @.message m
where m.pos = any(array(
  select f.pos from @.stream s join @.follower f on f.stream = s.n where {streams}
))
order by m.pos
