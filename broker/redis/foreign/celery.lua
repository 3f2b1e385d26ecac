-- Puts a new message of a task into the list of its queue, and removes the result.
local result, queue, table = K[1], K[2], K[3]
local message, binding = A[1], A[2]
if not (is(result, "string") and is(queue, "list") and is(table, "set")) then return "broken" end
local has = redis.call("GET", result)
local no = no_death(has, has, has)
if no then return no end
if redis.call("SISMEMBER", table, binding) == 0 then return "no: has a queue that is no longer bound: try again" end
redis.call("LPUSH", queue, message)
redis.call("DEL", result)
return "sent"
