-- Tells whether a queue has messages that have not ended.
-- in: fresh — how many messages ranges will hand out
-- in: first, last — positions of the queue
-- out: busy
select :fresh > 0
  or exists (select 1 from pending where pos > :first and pos <= :last)
  or exists (select 1 from batch where first > :first and last <= :last)
