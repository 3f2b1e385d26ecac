-- Part: what becomes of row p whose lease ended without a settlement. An owner that was to judge
-- the message ran nothing, and the end of one that was told to stop is free: no crash is counted.
-- in: now — the time
owner = 0,
until = 0,
due = :now,
crashes = p.crashes + (p.abandoned is null and not {{stop_is_free}})::int,
attempts = p.attempts - (p.abandoned is null)::int,
abandoned = case when p.abandoned is null and {{stop_is_free}} then null else coalesce(p.abandoned, {{abandoner}}) end,
patience = case when p.abandoned is null and {{stop_is_free}} then {{stopped_patience}} else p.patience end
