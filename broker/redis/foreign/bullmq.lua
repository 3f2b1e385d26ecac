-- Sends a job to its queue, as retry of the job does. BullMQ has the key meta; Bull 4
-- has none and tells its workers by a message. Before version 6 a paused queue has a list of its
-- own; of a job with a priority version 6 keeps it, and the others forget it.
local job, prefix = K[1], K[2]
local id, body, at, push, channel = A[1], A[2], A[3], A[4], A[5]
local failed, wait, paused, meta = prefix .. "failed", prefix .. "wait", prefix .. "paused", prefix .. "meta"
local active, marker, events = prefix .. "active", prefix .. "marker", prefix .. "events"
local prioritized, counter = prefix .. "prioritized", prefix .. "pc"
if not (is(job, "hash") and is(failed, "zset") and is(wait, "list") and is(paused, "list") and is(meta, "hash")
  and is(active, "list") and (is(marker, "zset") or is(marker, "string")) and is(events, "stream") and is(prioritized, "zset")
  and is(counter, "string")) then return "broken" end
local no = no_death(kind(job) ~= "none" and redis.call("ZSCORE", failed, id), redis.call("HGET", job, "data"), kind(job) ~= "none")
if no then return no end
if redis.call("EXISTS", job .. ":lock") == 1 then return "locked" end
local parent = redis.call("HGET", job, "parentKey")
if parent and not (is(parent, "hash") and is(parent .. ":unsuccessful", "zset") and is(parent .. ":failed", "hash")
  and is(parent .. ":dependencies", "set")) then return "broken" end
local version = redis.call("HGET", meta, "version") or ""
if new then redis.call("HSET", job, "name", A[6], "data", body, "opts", A[7], "timestamp", A[8], "delay", "0", "priority", "0") end
local major = tonumber(string.match(version, "^bullmq:(%d+)") or string.match(version, "^bullmq%-pro:(%d+)")) or 0
if kind(meta) == "none" then
  local target = wait
  if redis.call("EXISTS", prefix .. "meta-paused") == 1 then target = paused end
  redis.call(push, target, id)
  redis.call("HDEL", job, "finishedOn", "processedOn", "failedReason")
  redis.call("HSET", job, "retriedOn", at, "data", body)
  redis.call("ZREM", failed, id)
  redis.call("PUBLISH", wait .. "ing@" .. channel, id)
  return "sent"
end
local stopped = redis.call("HGET", meta, "paused")
local target = wait
if stopped and major < 6 then target = paused end
local most = tonumber(redis.call("HGET", meta, "concurrency") or "")
local full = stopped or most and redis.call("LLEN", active) >= most
local priority = major >= 6 and tonumber(redis.call("HGET", job, "priority") or "") or 0
if priority > 0 and priority <= 2097152 then
  redis.call("ZADD", prioritized, priority * 0x100000000 + redis.call("INCR", counter) % 0x100000000, id)
else
  redis.call(push, target, id)
end
redis.call("HDEL", job, "finishedOn", "processedOn", "failedReason")
redis.call("HSET", job, "data", body)
redis.call("ZREM", failed, id)
if not full and is(marker, "zset") then redis.call("ZADD", marker, 0, "0") end
if parent and redis.call("EXISTS", parent) == 1 then
  if redis.call("ZREM", parent .. ":unsuccessful", job) == 1 or redis.call("HDEL", parent .. ":failed", job) == 1 then
    redis.call("SADD", parent .. ":dependencies", job)
  end
end
local events_most = redis.call("HGET", meta, "opts.maxLenEvents") or "10000"
redis.call("XADD", events, "MAXLEN", "~", events_most, "*", "event", "waiting", "jobId", id, "prev", "failed")
return "sent"
