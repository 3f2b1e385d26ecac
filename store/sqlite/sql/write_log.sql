-- Writes how a message ended, with all its counters.
-- in: pos, state, ended, received, attempts, deliveries, crashes, generation, redrives — columns
-- in: number, steps, note, gap, redriven — columns
insert into log (pos, state, ended, received, attempts, deliveries, crashes, generation, redrives,
  number, steps, note, gap, redriven)
values (:pos, :state, :ended, :received, :attempts, :deliveries, :crashes, :generation, :redrives,
  :number, :steps, :note, :gap, :redriven)
