-- Sends a job to its queue, as requeue of the registry does.
local job, failed, queue, queues = K[1], K[2], K[3], K[4]
local id, name, body, at = A[1], A[2], A[3], A[4]
if not (is(job, "hash") and is(failed, "zset") and is(queue, "list") and is(queues, "set")) then return "broken" end
local no = no_death(kind(job) ~= "none" and redis.call("ZSCORE", failed, id), redis.call("HGET", job, "data"), kind(job) ~= "none")
if no then return no end
local limit = redis.call("HMGET", job, "rate_limit_key", "rate_limit_concurrency")
if limit[1] and limit[1] ~= "" then
  return "no: has the rate limit " .. limit[1] .. ", " .. (limit[2] or "0") .. " at once, which only RQ keeps: requeue it with RQ"
end
if new then redis.call("HSET", job, "description", A[5], "created_at", A[6]) end
redis.call("SADD", queues, queue)
redis.call("RPUSH", queue, id)
redis.call("HSET", job, "status", "queued", "origin", name, "data", body, "enqueued_at", at, "started_at", "", "ended_at", "")
redis.call("HDEL", job, "exc_info")
redis.call("PERSIST", job)
redis.call("ZREM", failed, id)
return "sent"
