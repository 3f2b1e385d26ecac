-- Part: the patience of row p after an owner that was told to stop vanished with it.
(
  coalesce(p.patience, '{}')::jsonb || jsonb_build_object(
    'free', coalesce((p.patience::json ->> 'free')::int, 0) + 1,
    'stops', coalesce((p.patience::json ->> 'stops')::int, 0) + 1,
    'stopped_by', {{abandoner}}
  )
)::text
