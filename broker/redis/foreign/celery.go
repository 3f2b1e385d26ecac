package foreign

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/internal/task"
)

// celery reads results of failed tasks of Celery in JSON. They are results and no dead tasks: they
// tell the arguments only with the setting result_extended, and expire after a day by default. The
// body of a letter is the result. A job that goes back is a repeat of its call: no result tells
// what was linked to it.
type celery struct {
	prefix string // as Celery's global_keyprefix
	script *redis.Script

	rests map[nixie.Hash][]time.Time // when tasks that never ran were marked, by the traceback that they got

	mu    sync.Mutex // guards bound
	bound []binding  // nil: not read
}

func newCelery(c Config) system {
	return &celery{prefix: c.Prefix, script: newScript("celery"), rests: map[nixie.Hash][]time.Time{}}
}

const celeryResult = "celery-task-meta-"

// results returns the beginning of the keys of results. Celery ends a prefix there, and kombu has
// it as it is in the keys of queues.
func (c *celery) results() string {
	if c.prefix != "" && !strings.ContainsRune(":_-.", rune(c.prefix[len(c.prefix)-1])) {
		return c.prefix + "_" + celeryResult
	}
	return c.prefix + celeryResult
}

// sets names the results twice: tasks that never ran are read before those for whose failure.
func (c *celery) sets(context.Context, redis.UniversalClient) ([]deadSet, error) {
	key := c.results()
	set := deadSet{key: key + "*", pattern: escaped(key) + "*"}
	first, second := set, set
	first.pass, second.pass = 1, 2
	return []deadSet{first, second}, nil
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
		f := object([]byte(text))
		why := f.neverRan()
		if f.text("status") != "FAILURE" || set.pass == 1 && why == "" || set.pass == 2 && why != "" {
			continue
		}
		j := celeryJob(f, []byte(text), strings.TrimPrefix(keys[i], c.results()))
		if j.tell(broker.HeaderNeverRan, why); why == "" {
			j.tell(broker.HeaderReview, c.leftOut(&j, f))
		}
		if set.pass == 1 {
			trace := nixie.HashBody([]byte(j.death.Stack))
			c.rests[trace] = append(c.rests[trace], j.death.FailedAt)
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// neverRan tells why a task died that no worker ran; "" if one did, or the result does not tell.
func (f fields) neverRan() string {
	switch {
	case f.text("worker") != "":
	case f.object("result").text("exc_type") == "ChordError":
		return "it is the body of a chord, and a task of that failed"
	case f.text("name") != "":
		return "it comes after a task that failed"
	}
	return ""
}

// leftOut tells what a repeat of its call leaves out, as far as results tell that.
func (c *celery) leftOut(j *job, f fields) string {
	var left []string
	if f.text("group_id") != "" {
		left = append(left, "the body of its chord does not run")
	}
	if f.text("parent_id") != "" || slices.ContainsFunc(c.rests[nixie.HashBody([]byte(j.death.Stack))], func(marked time.Time) bool {
		after := marked.Sub(j.death.FailedAt) // Celery marks the rest of a chain at once
		return after >= 0 && after < time.Second
	}) {
		left = append(left, "what comes after it in its chain does not run")
	}
	if children := f["children"]; isList(children) && string(children) != "[]" {
		left = append(left, "the tasks that it began run twice")
	}
	return strings.Join(left, ", ")
}

func celeryJob(f fields, stored []byte, id string) job {
	j := job{id: id, body: stored, kind: f.text("name"), queue: f.text("queue"), score: f.text("date_done")}
	j.death.FailedAt, j.death.Node, j.death.Stack = zoned(j.score), f.text("worker"), f.text("traceback")
	if n, ok := f.number("retries"); ok {
		j.attempts = task.Count(n + 1)
	}
	j.tell(broker.HeaderMade, unnamed(slices.Concat(f["name"], f["args"], f["kwargs"])))
	result := f.object("result")
	j.death.Type, j.death.Text = task.PythonError(j.death.Stack)
	var said []string
	if json.Unmarshal(result["exc_message"], &said) != nil {
		said = []string{result.text("exc_message")}
	}
	j.death.Type = cmp.Or(result.text("exc_type"), j.death.Type)
	j.death.Text = cmp.Or(j.death.Text, strings.Join(said, ", "))
	return j
}

// binding is one of a queue to an exchange, as kombu keeps it: a member of a table. A pattern is
// of a topic exchange.
type binding struct{ prefix, table, member, key, pattern, queue string }

const kombuTables = "_kombu.binding."

// queue finds the queue of a name or of a routing key. No worker reads what no binding names.
func (c *celery) queue(ctx context.Context, client redis.UniversalClient, id, name string) (to binding, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bound == nil {
		if c.bound, err = c.bindings(ctx, client); err != nil {
			return to, err
		}
	}
	if n := slices.IndexFunc(c.bound, func(b binding) bool { return b.queue == name }); n >= 0 {
		return c.bound[n], nil
	}
	leadsTo := map[string]binding{}
	for _, b := range c.bound {
		topic, err := regexp.Compile(b.pattern)
		if b.key == name || b.pattern != "" && err == nil && topic.MatchString(name) {
			leadsTo[b.queue], to = b, b
		}
	}
	switch len(leadsTo) {
	case 1:
		return to, nil
	case 0:
		return to, nixie.Errorf(nixie.CodeInvalid, "job %s: no key %s* of this database names its queue %q, so no worker reads it here: "+
			"send the task again from your program, which knows its broker", id, c.prefix+kombuTables, name)
	}
	return to, nixie.Errorf(nixie.CodeInvalid, "job %s: its routing key %q leads to %d queues, and its result does not tell which one: "+
		"send the task again from your program", id, name, len(leadsTo))
}

// bindings reads all bindings. A prefix that ends in _ may be the one of results, and not kombu's.
func (c *celery) bindings(ctx context.Context, client redis.UniversalClient) (list []binding, err error) {
	list = []binding{}
	for _, prefix := range slices.Compact([]string{c.prefix, strings.TrimSuffix(c.prefix, "_")}) {
		tables := client.ScanType(ctx, 0, escaped(prefix+kombuTables)+"*", scanCount, "set").Iterator()
		for tables.Next(ctx) && err == nil {
			var found []string
			found, err = client.SMembers(ctx, tables.Val()).Result()
			for _, member := range found {
				if part := strings.Split(member, "\x06\x16"); len(part) == 3 && part[2] != "" {
					list = append(list, binding{prefix, tables.Val(), member, part[0], part[1], part[2]})
				}
			}
		}
		if err := cmp.Or(err, tables.Err()); err != nil {
			return nil, readError(prefix+kombuTables, err)
		}
		if len(list) > 0 {
			break
		}
	}
	return list, nil
}

// lay names the result of a task.
func (c *celery) lay(r *returning) (deadSet, string) {
	key := c.results()
	return deadSet{key: key + "*", pattern: escaped(key) + "*"}, key + r.id
}

func (c *celery) back(ctx context.Context, client redis.UniversalClient, r *returning) (call, error) {
	f := object(r.body)
	name, args, kwargs := f.text("name"), f["args"], f["kwargs"]
	if name == "" || !isList(args) || object(kwargs) == nil {
		return call{}, nixie.Errorf(nixie.CodeInvalid, "job %s: its result does not tell name and arguments, which Celery keeps with "+
			"result_extended=True and in JSON only: send the task again from your program", r.id)
	}
	if left := cmp.Or(f.neverRan(), c.leftOut(&job{}, f)); left != "" && r.fact(broker.HeaderReview) == "" {
		return call{}, nixie.Errorf(nixie.CodeInvalid, "job %s: %s, and its letter is of a version that did not know: "+
			"send the task again from your program", r.id, left)
	}
	to, err := c.queue(ctx, client, r.id, r.queue)
	if err != nil {
		return call{}, err
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
			"delivery_info": map[string]any{"exchange": "", "routing_key": to.queue},
		},
	})
	if err != nil {
		return call{}, nixie.Errorf(nixie.CodeInvalid, "job %s: %w", r.id, err)
	}
	return call{c.script, []string{c.results() + r.id, to.prefix + to.queue, to.table}, []any{message, to.member}}, nil
}

// maxRepr bounds the arguments that a message shows to people, as Celery does.
const maxRepr = 1024

func isList(text json.RawMessage) bool {
	var list []json.RawMessage
	return json.Unmarshal(text, &list) == nil && list != nil
}
