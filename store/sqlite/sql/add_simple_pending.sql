-- Adds the row of a queued message that has only these columns.
-- in: pos, queue, state, priority, due, attempts, deliveries, number, received, claimed — columns
-- in: reason, patience — columns
insert into pending (pos, queue, state, priority, due, attempts, deliveries, number, received,
  claimed, reason, patience)
values (:pos, :queue, :state, :priority, :due, :attempts, :deliveries, :number, :received,
  :claimed, :reason, :patience)
