-- Completes members of a batch: runs as one success range each, others as rows of log.
-- in: batch — number of the batch, which is locked
-- in: clock — the time that a test set, or null
-- in: firsts — of each run of members next to each other the position of the first
-- in: lasts — of the last
-- in: lows — the lowest
-- in: highs — the highest
-- in: sizes — how many they are
-- in: singles — positions of members on their own
-- locks: none
-- out: runs, singles: the numbers of those that were completed, from 1 on
with
{{still_members}},
in_ranges as (
  insert into @.success_range (queue, after_tx, after, last_tx, last, members, ended, received)
  select queue, first_tx, first - 1, last_tx, last, members, now, claimed from run
),
logged as (
  insert into @.log (pos, queue, state, ended, received)
  select pos, queue, 2, now, claimed from lone
),
counted as materialized (
  select b.queue, b.remains, s.k, s.k + (select count(*) from lone) as n
  from b, (select coalesce(sum(members), 0) as k from run) s
),
gone as (delete from @.batch x using counted c where x.n = :batch and c.remains <= c.n),
kept as (
  update @.batch x set remains = x.remains - c.n, in_ranges = x.in_ranges + c.k
  from counted c
  where x.n = :batch and c.remains > c.n and c.n > 0
),
summed as (
  insert into @.counter (queue, state, reason, n)
  select c.queue, 2, '', c.n from counted c where c.n > 0
)
select array(select nth from run), array(select nth from lone) from b
