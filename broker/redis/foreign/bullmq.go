package foreign

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie"
)

// bullmq reads the failed jobs of BullMQ, and of Bull 4. An entry is the ID of a job, its score
// milliseconds. The body of a letter is the data of the job.
type bullmq struct {
	keys
	script *redis.Script
}

func newBullMQ(c Config) system { return &bullmq{keys(c.Prefix), newScript(bullmqBack)} }

func (b *bullmq) sets(ctx context.Context, c redis.UniversalClient) ([]deadSet, error) {
	return b.named(ctx, c, "", ":failed")
}

func (b *bullmq) read(ctx context.Context, c redis.UniversalClient, set deadSet, entries []redis.Z) ([]job, error) {
	ids := members(entries)
	found, err := hashes(ctx, c, prefixed(b.of(set.queue+":"), ids),
		[]string{"name", "data", "opts", "failedReason", "stacktrace", "attemptsMade", "atm", "timestamp", "finishedOn"})
	if err != nil {
		return nil, err
	}
	logs := make([]*redis.StringSliceCmd, len(ids))
	pipe := c.Pipeline()
	for i, id := range ids {
		logs[i] = pipe.LRange(ctx, b.of(set.queue+":"+id+":logs"), -maxLines, -1)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	jobs := make([]job, len(entries))
	for i := range entries {
		j := bullmqJob(found[i], entries[i].Score)
		j.id, j.queue, j.entry, j.opts = ids[i], set.queue, entries[i], found[i].fields["opts"]
		lines, err := logs[i].Result()
		if err != nil && !isWrongType(err) {
			return nil, readError(set.key, err)
		}
		for _, line := range lines {
			j.tell("job-log", line)
		}
		jobs[i] = j
	}
	return jobs, nil
}

// maxLines is the most lines of a log, and earlier failures, that a letter has.
const maxLines = 10

// bullmqJob reads a job. The stack traces are those of its attempts, the last one of its death; of
// the earlier ones the time is not known, so they are facts and no history.
func bullmqJob(s stored, score float64) job {
	f := s.fields
	j := job{kind: f["name"], body: []byte(f["data"]), damage: s.damage}
	j.enqueued = numeral(f["timestamp"])
	if j.death.FailedAt = numeral(f["finishedOn"]); j.death.FailedAt.IsZero() {
		j.death.FailedAt = moment(score)
	}
	made := f["atm"]
	if made == "" {
		made = f["attemptsMade"]
	}
	n, _ := strconv.ParseFloat(made, 64)
	j.attempts = bounded(n)
	j.death.Text = f["failedReason"]
	j.tell(headerOpts, f["opts"])
	var stacks []string
	if json.Unmarshal([]byte(f["stacktrace"]), &stacks) != nil || len(stacks) == 0 {
		return j
	}
	j.death.Stack = stacks[len(stacks)-1]
	first, _, _ := strings.Cut(j.death.Stack, "\n")
	if kind, _, ok := strings.Cut(first, ": "); ok && !strings.ContainsAny(kind, " \t") {
		j.death.Type = kind
	}
	earlier := stacks[:len(stacks)-1]
	for n, stack := range earlier[max(len(earlier)-maxLines, 0):] {
		text, _, _ := strings.Cut(stack, "\n")
		j.tell("job-failure", fmt.Sprintf("%d before the last: %s", min(len(earlier), maxLines)-n, text))
	}
	return j
}

// bullmqBack sends a job to its queue, as retry of the job does. BullMQ has the key meta; Bull 4
// has none and tells its workers by a message. Before version 6 a paused queue has a list of its
// own; of a job with a priority version 6 keeps it, and the others forget it.
const bullmqBack = `
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
return "sent"`

func (b *bullmq) find(ctx context.Context, pipe redis.Pipeliner, r *returning) (deadSet, func() ([]redis.Z, error)) {
	return scored(ctx, pipe, deadSet{key: b.of(r.queue + ":failed"), queue: r.queue}, r.id)
}

func (b *bullmq) back(_ context.Context, _ redis.UniversalClient, r *returning) (call, error) {
	opts := cmp.Or(r.fact(headerOpts), "{}")
	if r.there != nil {
		opts = r.there.opts
	} else if object([]byte(opts)) == nil {
		return call{}, nixie.Errorf(nixie.CodeInvalid, "job %s cannot be made anew: its letter has only a part of its options", r.id)
	}
	push := "LPUSH"
	if string(object([]byte(opts))["lifo"]) == "true" {
		push = "RPUSH"
	}
	return call{b.script, []string{b.of(r.queue + ":" + r.id), b.of(r.queue + ":")},
		[]any{r.id, r.body, r.now.UnixMilli(), push, "nixie", r.fact(headerType), opts, r.created().UnixMilli()}}, nil
}
