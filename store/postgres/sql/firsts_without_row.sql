-- Part: of the streams of letters the first messages that wait without a row.
-- in: ids — the IDs
select f.pos
from @.message o
join @.stream s on s.queue = o.queue and s.name = o.stream
cross join lateral ({{first_without_row}}) f
where o.pos = any(array({{letters_with}})) and not {{is_claimed}}
