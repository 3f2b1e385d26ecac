-- Part: a condition on pending: the message may pass its head, but the head is due by now and goes
-- first.
-- in: queue, now — the queue is argument 1 of each statement that includes this
-- whole: select 1 from pending where queue = ?1 and …
may_pass = 1 and exists (
select 1 from pending h
where h.stream = pending.stream and h.rank < pending.rank and h.state = 0 and h.due <= +:now)
