-- Pauses a queue and leaves its other settings as they are now.
-- in: queue — number of the queue
-- in: note — why
-- locks: queue
-- out: none
update @.queue set
  paused = true,
  settings = settings || jsonb_build_object('paused', true, 'paused_note', :note::text)
where n = :queue
