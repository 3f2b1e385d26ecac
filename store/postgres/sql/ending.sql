-- Part: the positions of letters or messages whose IDs have given endings. An ID may say its position; the last six
-- digits of other letters are in an index, and other messages are searched for. The sequence says the greatest
-- position: a server that takes the table for a small one would read all of it for that. The order makes the index of last
-- digits the best, also for a server that takes each index for empty, as before it has counted a table.
-- fill: table — letter or message
-- in: endings — the last digits of an ID each, in small letters
select e.pos
from (
  select
    ending, length(ending) as digits,
    ('x' || lpad(right(ending, 12), 12, '0'))::bit(48)::bigint as first,
    1::bigint << 4 * least(length(ending), 12) as step
  from unnest(:endings::text[]) u (ending)
) u
cross join lateral (
  (
    select m.pos
    from generate_series(u.first, (select pg_sequence_last_value('@.position') + 31), u.step) g (pos)
    cross join lateral (select * from @.{table} where pos = g.pos limit 1) m
    where m.numbered and right(replace(m.id::text, '-', ''), u.digits) = u.ending
  )
  union all
  (
    select pos
    from @.{table}
    where not numbered and right(id::text, 6) = right(u.ending, 6) and right(replace(id::text, '-', ''), u.digits) = u.ending
    order by right(id::text, 6)
  )
) e
