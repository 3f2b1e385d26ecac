-- Inserts plain messages of queues that this process knows, if each queue is as it was known and
-- the locks of all of them were to be had: it takes in messages and has no order.
-- in: ids — of the messages
-- in: queues — their numbers
-- in: types — of the messages
-- in: keys — or empty
-- in: streams — or empty
-- in: bodies — of the messages
-- in: hashes — of the bodies
-- in: headers — as JSON, or empty
-- in: origins — as JSON, or empty
-- in: enqueued — when, or 0 for now
-- in: expires — when, or 0
-- in: known — numbers of the queues
-- in: settings — of these queues, as text
-- locks: none; see try_queue_locks
-- out: a row for each message
{{plain_insertion}}
where current_setting('nixie.held')::boolean
  and (
    select count(*) from @.queue where n = any(:known) and settings::text = any(:settings)
  ) = cardinality(:known::int[])
returning 1
