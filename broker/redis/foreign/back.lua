-- Sends a job back. The death that lies there must be the one that was read: score and sum are those
-- of its entry and of what is stored. A repeat of a redrive whose answer was lost finds the mark of
-- the first one. K and A are the keys and arguments of the script of the job queue.
local K, A = {}, {}
for n = 2, #KEYS do K[n - 1] = KEYS[n] end
for n = 4, #ARGV do A[n - 3] = ARGV[n] end
local score, sum = ARGV[2], ARGV[3]
local new = score == "new"
local function kind(key)
  return redis.call("TYPE", key).ok
end
local function is(key, want)
  local has = kind(key)
  return has == "none" or has == want
end
if redis.call("EXISTS", KEYS[1]) == 1 then return "sent" end
if score == "gone" then return "gone" end
local function no_death(has, stored, taken)
  if new then return taken and "taken" end
  if not has then return "gone" end
  if score ~= "" and tonumber(has) ~= tonumber(score) or redis.sha1hex(stored or "") ~= sum then return "other" end
end
local function back()
-- the script of the job queue
end
local answer = back()
if answer == "sent" then redis.call("SET", KEYS[1], "1", "PX", ARGV[1]) end
return answer
