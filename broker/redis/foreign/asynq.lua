-- Sends a task to its queue, as RunTask of asynq's Inspector does. If an operator changed
-- the payload, the task gets the new one.
local task, pending, archived = K[1], K[2], K[3]
local queues, id, changed, name = K[4], A[1], A[2], A[3]
if not (is(task, "hash") and is(pending, "list") and is(archived, "zset") and is(queues, "set")) then return "broken" end
local no = no_death(redis.call("ZSCORE", archived, id), redis.call("HGET", task, "msg"), kind(task) ~= "none")
if no then return no end
if new then redis.call("SADD", queues, name) end
redis.call("LPUSH", pending, id)
redis.call("HSET", task, "state", "pending", "msg", changed)
redis.call("ZREM", archived, id)
return "sent"
