-- Writes how the message of an adopted letter ended.
-- in: pos, state, ended, received, attempts, deliveries, crashes, generation, redrives — columns
-- in: number, steps, gap, redriven — columns
insert into log (pos, state, ended, received, attempts, deliveries, crashes, generation, redrives,
  number, steps, note, gap, redriven)
values (:pos, :state, :ended, :received, :attempts, :deliveries, :crashes, :generation, :redrives,
  :number, :steps, null, :gap, nullif(:redriven, 0))
