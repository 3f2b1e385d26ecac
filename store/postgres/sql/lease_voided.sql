-- Part: what becomes of row p whose lease ended without a settlement. An owner that was to judge
-- the message ran nothing: that crash is not counted.
-- in: now — the time
owner = 0,
until = 0,
due = :now,
crashes = p.crashes + (p.abandoned is null)::int,
attempts = p.attempts - (p.abandoned is null)::int,
abandoned = coalesce(p.abandoned, {{abandoner}})
