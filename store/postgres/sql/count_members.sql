-- Counts which members of a batch are still leased.
-- in: batch — number of the batch, which is locked
-- in: clock — the time that a test set, or null
-- in: firsts — of each run of members next to each other the position of the first
-- in: lasts — of the last
-- in: lows — the lowest
-- in: highs — the highest
-- in: sizes — how many they are
-- in: singles — positions of members on their own
-- locks: none
-- out: count
with {{still_members}}
select (select coalesce(sum(members), 0) from run)::bigint + (select count(*) from lone)
