-- Sends a job to its queue, as the button Retry of Sidekiq does.
local set, queues, queue = K[1], K[2], K[3]
local entry, changed, name = A[1], A[2], A[3]
if not (is(set, "zset") and is(queues, "set") and is(queue, "list")) then return "broken" end
local has = redis.call("ZSCORE", set, entry)
local no = no_death(has, entry, has)
if no then return no end
redis.call("SADD", queues, name)
redis.call("LPUSH", queue, changed)
if not new then redis.call("ZREM", set, entry) end
return "sent"
