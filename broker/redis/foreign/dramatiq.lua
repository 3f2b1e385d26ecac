-- Puts a message into the list of its queue, as enqueue of the broker does.
local dead, lost, queue, msgs = K[1], K[2], K[3], K[4]
local id, body = A[1], A[2]
if not (is(dead, "zset") and is(lost, "hash") and is(queue, "list") and is(msgs, "hash")) then return "broken" end
local no = no_death(redis.call("ZSCORE", dead, id), redis.call("HGET", lost, id),
  redis.call("HEXISTS", lost, id) + redis.call("HEXISTS", msgs, id) > 0)
if no then return no end
redis.call("RPUSH", queue, id)
redis.call("HSET", msgs, id, body)
redis.call("ZREM", dead, id)
redis.call("HDEL", lost, id)
return "sent"
