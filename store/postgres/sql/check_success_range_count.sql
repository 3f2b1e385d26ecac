-- Finds what breaks the rule success-range-count: a success range counts its messages, which have no rows, and overlaps no other.
-- locks: none
-- out: subject, text
select 'success range after ' || s.after, 'is about other messages than ' || s.members || ' that succeeded and have no rows'
from @.success_range s
where s.members <> (
    select count(*)
    from @.success x
    where (x.queue, x.after_tx, x.after) = (s.queue, s.after_tx, s.after)
      and not exists (select from @.log l where l.pos = x.pos)
      and not exists (select from @.pending p where p.pos = x.pos)
  )
  or (s.last_tx, s.last) <> (
    select m.tx, m.pos
    from @.message m
    where m.queue = s.queue and m.by_range and (m.tx, m.pos) > (s.after_tx, s.after)
    order by m.tx, m.pos
    offset s.members - 1
    limit 1
  )
  or exists (
    select
    from (
      select o.after_tx, o.after
      from @.success_range o
      where o.queue = s.queue and (o.after_tx, o.after) > (s.after_tx, s.after)
      order by o.after_tx, o.after
      limit 1
    ) o
    where (o.after_tx, o.after) < (s.last_tx, s.last)
  )
