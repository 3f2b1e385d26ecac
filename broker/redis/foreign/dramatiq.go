package foreign

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/task"
)

// dramatiq reads the dead-letter queues of Dramatiq. An entry is the ID that a message has in
// Redis, its score milliseconds. The body of a letter is the message in JSON.
type dramatiq struct {
	keys
	script *redis.Script
}

const (
	dramatiqSet = ".XQ"
	dramatiqID  = "redis_message_id"
)

func newDramatiq(c Config) system { return &dramatiq{keys(c.Prefix), newScript("dramatiq")} }

func (d *dramatiq) sets(ctx context.Context, c redis.UniversalClient) ([]deadSet, error) {
	return d.named(ctx, c, "", dramatiqSet)
}

func (d *dramatiq) read(ctx context.Context, c redis.UniversalClient, set deadSet, entries []redis.Z) ([]job, error) {
	ids := members(entries)
	texts, err := c.HMGet(ctx, set.key+".msgs", ids...).Result()
	if err != nil && !isWrongType(err) {
		return nil, readError(set.key+".msgs", err)
	}
	jobs := make([]job, len(entries))
	for i := range entries {
		var text any
		if err == nil {
			text = texts[i]
		}
		jobs[i] = dramatiqJob(text, ids[i], set.queue, entries[i].Score)
		jobs[i].entry = entries[i]
	}
	return jobs, nil
}

// dramatiqJob reads a message.
func dramatiqJob(text any, entry, queue string, score float64) job {
	stored, there := text.(string)
	j := job{queue: queue, body: []byte(stored)}
	f := object(j.body)
	switch {
	case !there:
		j.damage = "its message is gone, and only its ID lies there"
	case f == nil:
		j.damage = "its message is no JSON object"
	}
	options := f.object("options")
	j.id = cmp.Or(f.text("message_id"), entry)
	j.kind, j.enqueued, j.death.FailedAt = f.text("actor_name"), f.moment("message_timestamp"), moment(score)
	if f != nil { // the message is stored as it was before the last attempt
		j.attempts = options.count("retries") + 1
	}
	if trace := options.text("traceback"); trace != "" {
		j.death.Type, j.death.Text = task.PythonError(trace)
		j.death.Stack = trace
		j.tell("job-error", "it is that of the attempt before the last, whose own Dramatiq does not keep")
	}
	if j.attempts == 2 {
		j.firstFailed = options.moment("requeue_timestamp")
	}
	return j
}

func (d *dramatiq) lay(r *returning) (deadSet, string) {
	id := object(r.body).object("options").text(dramatiqID)
	return deadSet{key: d.of(r.queue + dramatiqSet), queue: r.queue}, cmp.Or(id, r.id)
}

func (d *dramatiq) back(_ context.Context, _ redis.UniversalClient, r *returning) (call, error) {
	f := object(r.body)
	options := f.object("options")
	if options == nil {
		return call{}, nixie.Errorf(nixie.CodeInvalid, "job %s: its body is no message of dramatiq: it has no options", r.id)
	}
	for _, name := range [...]string{"retries", "traceback", "requeue_timestamp", "eta"} {
		delete(options, name)
	}
	var err error
	if f["options"], err = json.Marshal(options); err != nil {
		return call{}, nixie.Errorf(nixie.CodeInvalid, "job %s: %w", r.id, err)
	}
	if f["queue_name"], err = json.Marshal(r.queue); err != nil {
		return call{}, nixie.Errorf(nixie.CodeInvalid, "job %s: %w", r.id, err)
	}
	body, err := json.Marshal(f)
	if err != nil {
		return call{}, nixie.Errorf(nixie.CodeInvalid, "job %s: %w", r.id, err)
	}
	dead := d.of(r.queue + dramatiqSet)
	return call{d.script, []string{dead, dead + ".msgs", d.of(r.queue), d.of(r.queue + ".msgs")},
		[]any{options.text(dramatiqID), body}}, nil
}
