-- Counts messages in success ranges that ended a while ago.
-- in: queue — number of the queue
-- in: before — what ended up to here
-- in: max — how many messages at most
-- locks: none
-- out: count
select least(coalesce(sum(members), 0), :max)::bigint from {{old_ranges}} s
