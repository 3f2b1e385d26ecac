package foreign

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie"
)

// celery reads results of failed tasks of Celery in JSON. They are results and no dead tasks: they
// tell the arguments only with the setting result_extended, and expire after a day by default. The
// body of a letter is the result.
type celery struct {
	prefix string // as Celery's global_keyprefix, which has no colon of its own
	script *redis.Script
}

func newCelery(c Config) system { return &celery{c.Prefix, newScript(celeryBack)} }

const (
	celeryResult = "celery-task-meta-"
	celeryFailed = "FAILURE"
)

func (c *celery) sets(context.Context, redis.UniversalClient) ([]deadSet, error) {
	key := c.prefix + celeryResult
	return []deadSet{{key: key + "*", pattern: escaped(key) + "*"}}, nil
}

// read leaves out the results of other states, and those that are not JSON.
func (c *celery) read(ctx context.Context, client redis.UniversalClient, set deadSet, entries []redis.Z) ([]job, error) {
	keys := members(entries)
	results, err := client.MGet(ctx, keys...).Result()
	if err != nil {
		return nil, readError(set.key, err)
	}
	var jobs []job
	for i, r := range results {
		text, _ := r.(string)
		if f := object([]byte(text)); f.text("status") == celeryFailed {
			jobs = append(jobs, celeryJob(f, []byte(text), strings.TrimPrefix(keys[i], c.prefix+celeryResult)))
		}
	}
	return jobs, nil
}

func celeryJob(f fields, stored []byte, id string) job {
	j := job{id: id, body: stored, kind: f.text("name"), queue: f.text("queue"), score: f.text("date_done")}
	j.death.FailedAt, j.death.Node, j.death.Stack = zoned(j.score), f.text("worker"), f.text("traceback")
	if n, ok := f.number("retries"); ok {
		j.attempts = bounded(n + 1)
	}
	result := f.object("result")
	j.death.Type, j.death.Text = pythonError(j.death.Stack)
	if kind := result.text("exc_type"); kind != "" {
		j.death.Type = kind
	}
	if j.death.Text == "" {
		var said []string
		if json.Unmarshal(result["exc_message"], &said) == nil {
			j.death.Text = strings.Join(said, ", ")
		} else {
			j.death.Text = result.text("exc_message")
		}
	}
	return j
}

// celeryBack puts a new message of a task into the list of its queue, and removes the result.
const celeryBack = `
local result, queue = K[1], K[2]
local body, done, message = A[1], A[2], A[3]
if not (is(result, "string") and is(queue, "list")) then return "broken" end
local now = redis.call("GET", result)
if not now or now ~= body and (done == "" or not string.find(now, '"' .. done .. '"', 1, true)) then return "gone" end
redis.call("LPUSH", queue, message)
redis.call("DEL", result)
return "sent"`

func (c *celery) back(_ context.Context, _ redis.UniversalClient, r *returning) (call, error) {
	f := object(r.body)
	name, args, kwargs := f.text("name"), f["args"], f["kwargs"]
	if name == "" || !isList(args) || object(kwargs) == nil {
		return call{}, nixie.Errorf(nixie.CodeInvalid, "job %s: its result does not tell name and arguments, which Celery keeps with "+
			"result_extended=True and in JSON only: send the task again from your program", r.id)
	}
	body, err := json.Marshal([]any{args, kwargs, map[string]any{"callbacks": nil, "errbacks": nil, "chain": nil, "chord": nil}})
	if err != nil {
		return call{}, nixie.Errorf(nixie.CodeInvalid, "job %s: %w", r.id, err)
	}
	message, err := json.Marshal(map[string]any{
		"body": base64.StdEncoding.EncodeToString(body), "content-encoding": "utf-8", "content-type": "application/json",
		"headers": map[string]any{
			"lang": "py", "task": name, "id": r.id, "root_id": r.id, "parent_id": nil, "group": nil, "retries": 0, "eta": nil,
			"expires": nil, "timelimit": []any{nil, nil}, "origin": "nixie", "ignore_result": false,
			"argsrepr": clipped(string(args), maxRepr), "kwargsrepr": clipped(string(kwargs), maxRepr),
		},
		"properties": map[string]any{
			"correlation_id": r.id, "reply_to": "", "delivery_mode": 2, "priority": 0, "body_encoding": "base64", "delivery_tag": r.id,
			"delivery_info": map[string]any{"exchange": "", "routing_key": r.queue},
		},
	})
	if err != nil {
		return call{}, nixie.Errorf(nixie.CodeInvalid, "job %s: %w", r.id, err)
	}
	return call{c.script, []string{c.prefix + celeryResult + r.id, c.prefix + r.queue}, []any{r.body, r.score, message}}, nil
}

// maxRepr bounds the arguments that a message shows to people, as Celery does.
const maxRepr = 1024

func isList(text json.RawMessage) bool {
	var list []json.RawMessage
	return json.Unmarshal(text, &list) == nil && list != nil
}
