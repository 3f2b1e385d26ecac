-- Removes the oldest messages of success ranges, and counts them. Of the last range the end may
-- stay.
-- in: queue — number of the queue
-- in: before — what ended up to here
-- in: max — how many messages
-- locks: tally, by name
-- out: none
with
  cut as materialized (select *, least(members, :max - before) as n from {{old_ranges}} s),
  gone as materialized (
    select c.queue, c.after_tx, c.after, m.pos, m.tx
    from cut c
    cross join lateral (
      select m.pos, m.tx
      from @.message m
      where m.queue = c.queue and m.by_range and (m.tx, m.pos) > (c.after_tx, c.after)
      order by m.tx, m.pos
      limit c.n
    ) m
  ),
  removed as (delete from @.message where pos = any(array(select pos from gone))),
  ended as (
    delete from @.success_range s
    using cut c
    where s.queue = c.queue and s.after_tx = c.after_tx and s.after = c.after and c.n = c.members
  ),
  stays as (
    update @.success_range s set members = s.members - c.n, after_tx = e.tx, after = e.pos
    from cut c
    cross join lateral (
      select g.tx, g.pos
      from gone g
      where g.after_tx = c.after_tx and g.after = c.after
      order by g.tx desc, g.pos desc
      limit 1
    ) e
    where s.queue = c.queue and s.after_tx = c.after_tx and s.after = c.after and c.n < c.members
  ),
  counted as (
    insert into @.counter (queue, state, reason, n) select :queue, 2, '', -count(*) from gone
  )
insert into @.tally (queue, what, name, n)
select :queue, 'pruned', 'succeeded', count(*) from gone
on conflict (queue, what, name) do update set n = tally.n + excluded.n
