-- Part: whether the end of the owner of row p is no crash: it was told to stop, and fewer than 20 such
-- owners vanished with the message before.
(
  coalesce((p.patience::json ->> 'stops')::int, 0) < 20
  and {{owner_was_told}}
)
