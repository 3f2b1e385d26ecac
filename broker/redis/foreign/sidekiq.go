package foreign

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/internal/task"
)

// sidekiq reads the sets dead and retry of Sidekiq. An entry is a job in JSON, its score seconds.
// The body of a letter is that JSON.
type sidekiq struct {
	keys
	retry  bool
	script *redis.Script
}

func newSidekiq(c Config) system { return &sidekiq{keys(c.Prefix), c.Retry, newScript("sidekiq")} }

const sidekiqRetry = "retry"

func (s *sidekiq) sets(context.Context, redis.UniversalClient) ([]deadSet, error) {
	all := []deadSet{{key: s.of("dead")}}
	if s.retry {
		all = append(all, deadSet{key: s.of(sidekiqRetry)})
	}
	return all, nil
}

func (s *sidekiq) read(_ context.Context, _ redis.UniversalClient, set deadSet, entries []redis.Z) ([]job, error) {
	jobs := make([]job, len(entries))
	for i, e := range entries {
		jobs[i] = sidekiqJob([]byte(e.Member.(string)), e.Score, set.key == s.of(sidekiqRetry))
		jobs[i].entry = e
	}
	return jobs, nil
}

// sidekiqJob reads a job. The score of a dead job tells its death, that of another one its next
// attempt.
func sidekiqJob(stored []byte, score float64, retried bool) job {
	j := job{body: stored, score: seconds(score)}
	f := object(stored)
	if f == nil {
		j.damage = "its entry is no JSON object"
	}
	j.id, j.queue, j.kind = cmp.Or(f.text("jid"), unnamed(stored)), f.text("queue"), f.text("class")
	j.tell("job-wrapped", f.text("wrapped"))
	j.tell(broker.HeaderMade, string(f["created_at"]))
	j.enqueued = cmp.Or(f.moment("enqueued_at"), f.moment("created_at"))
	j.firstFailed = f.moment("failed_at")
	j.death.FailedAt = cmp.Or(f.moment("retried_at"), j.firstFailed)
	if !retried {
		j.death.FailedAt = moment(score)
	}
	if n, ok := f.number("retry_count"); ok { // the first failure makes it 0
		j.attempts = task.Count(n + 1)
	}
	j.death.Type, j.death.Text = f.text("error_class"), f.text("error_message")
	j.unpack = func(j *job, in *inflater) { j.death.Stack = sidekiqTrace(f["error_backtrace"], in) }
	return j
}

// sidekiqTrace reads a backtrace: a list, or the base64 of its compressed JSON.
func sidekiqTrace(stored json.RawMessage, in *inflater) string {
	var packed string
	if json.Unmarshal(stored, &packed) == nil {
		if stored = json.RawMessage(in.base64(packed)); string(stored) == tooLong {
			return tooLong
		}
	}
	var lines []string
	_ = json.Unmarshal(stored, &lines) // what is no list has no lines
	return strings.Join(lines, "\n")
}

// lay leaves the member out: an entry is the job, which the letter may have changed.
func (s *sidekiq) lay(r *returning) (deadSet, string) {
	if strings.HasSuffix(r.lain, sidekiqRetry) {
		return deadSet{key: s.of(sidekiqRetry)}, ""
	}
	return deadSet{key: s.of("dead")}, ""
}

func (s *sidekiq) back(_ context.Context, _ redis.UniversalClient, r *returning) (call, error) {
	f := object(r.body)
	if f == nil {
		return call{}, nixie.Errorf(nixie.CodeInvalid, "job %s: the new body is no JSON object, which a job of sidekiq is", r.id)
	}
	var at any = r.now.UnixMilli()
	if n, _ := f.number("enqueued_at"); n < firstMilli { // before Sidekiq 8
		at = float64(r.now.UnixMilli()) / 1000
	}
	set := map[string]any{"enqueued_at": at, "queue": r.queue}
	if n, ok := f.number("retry_count"); ok {
		set["retry_count"] = task.Count(n+1) - 2
	}
	for name, value := range set {
		text, err := json.Marshal(value)
		if err != nil {
			return call{}, nixie.Errorf(nixie.CodeInvalid, "job %s: %s: %w", r.id, name, err)
		}
		f[name] = text
	}
	changed, err := json.Marshal(f)
	if err != nil {
		return call{}, nixie.Errorf(nixie.CodeInvalid, "job %s: %w", r.id, err)
	}
	return call{s.script, []string{r.set.key, s.of("queues"), s.of("queue:" + r.queue)}, []any{r.stored(), changed, r.queue}}, nil
}
