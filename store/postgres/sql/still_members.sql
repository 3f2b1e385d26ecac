-- Part: which messages of a batch, which is locked, are still leased: run has those of the given
-- runs, and lone those of the given single positions, that are in no success range yet and have
-- no row. Rows are looked for between the lowest and the highest position of a run, and not at
-- all if these are 100000 or more from each other: see tooFar.
-- in: batch — number of the batch, which is locked
-- in: clock — the time that a test set, or null
-- in: firsts — of each run the position of the first
-- in: lasts — of the last
-- in: lows — the lowest
-- in: highs — the highest
-- in: sizes — how many they are
-- in: singles — positions of members on their own
clock as materialized (select coalesce(:clock::bigint, {{clock}}) as now),
b as materialized (
  select b.*, clock.now, b.members - b.remains > b.in_ranges as mixed
  from @.batch b, clock
  where b.n = :batch and b.until > clock.now
),
run as materialized (
  select
    u.nth, u.members, b.queue, f.tx as first_tx, u.first, at.tx as last_tx, at.pos as last, b.now, b.claimed
  from b
  cross join unnest(
    :firsts::bigint[], :lasts::bigint[], :lows::bigint[], :highs::bigint[], :sizes::bigint[]
  ) with ordinality u (first, last, low, high, members, nth)
  cross join lateral (
    select m.tx from @.message m where m.pos = u.first and m.queue = b.queue and m.by_range limit 1
  ) f
  cross join lateral (
    select m.queue, m.tx, m.pos
    from @.message m
    where m.pos = u.last and m.queue = b.queue and m.by_range
    limit 1
  ) at
  where (f.tx, u.first) > (b.after_tx, b.after)
    and (at.tx, at.pos) <= (b.last_tx, b.last)
    and (b.in_ranges = 0 or not exists ({{range_before}} (f.tx, u.first)))
    and (
      not b.mixed
      or u.high - u.low < 100000
        and not exists (
          select
          from (
            select p.pos from @.pending p where p.pos between u.low and u.high
            union all
            select g.pos from @.log g where g.pos between u.low and u.high
          ) r
          cross join lateral (
            select m.tx
            from @.message m
            where m.pos = r.pos and m.queue = b.queue and m.by_range
            limit 1
          ) m
          where (m.tx, r.pos) >= (f.tx, u.first) and (m.tx, r.pos) <= (at.tx, at.pos)
        )
    )
),
lone as materialized (
  select u.nth, at.pos, b.queue, b.now, b.claimed
  from b
  cross join unnest(:singles::bigint[]) with ordinality u (pos, nth)
  cross join lateral (
    select m.queue, m.tx, m.pos
    from @.message m
    where m.pos = u.pos and m.queue = b.queue and m.by_range
    limit 1
  ) at
  where (at.tx, at.pos) > (b.after_tx, b.after)
    and (at.tx, at.pos) <= (b.last_tx, b.last)
    and (b.in_ranges = 0 or not exists ({{range_before}} (at.tx, at.pos)))
    and (
      not b.mixed
      or (select p.pos from @.pending p where p.pos = at.pos) is null
        and (select l.pos from @.log l where l.pos = at.pos) is null
    )
)
