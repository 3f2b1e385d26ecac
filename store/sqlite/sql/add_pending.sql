-- Adds the row of a message with all its columns.
-- in: pos, queue, state, priority, due, attempts, deliveries, crashes, generation — columns
-- in: redrives, number, owner, until, received, abandoned, steps, stream, rank, may_pass — columns
-- in: gap, claimed, reason, alone, redriven, patience — columns
insert into pending (pos, queue, state, priority, due, attempts, deliveries, crashes, generation,
  redrives, number, owner, until, received, abandoned, steps, stream, rank, may_pass, gap, claimed,
  reason, alone, redriven, patience)
values (:pos, :queue, :state, :priority, :due, :attempts, :deliveries, :crashes, :generation,
  :redrives, :number, :owner, :until, :received, :abandoned, :steps, :stream, :rank, :may_pass,
  :gap,
  :claimed, :reason, :alone, :redriven, :patience)
