-- Adds to a counter. It adds the row if it is missing.
-- in: what, subject, number, slot, name — key of the counter
-- in: n — what is added
-- out: n
insert into counter (what, subject, number, slot, name, n)
values (:what, :subject, :number, :slot, :name, :n)
on conflict do update set n = n + excluded.n
returning n
