package foreign

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/task"
	"github.com/nixie-go/nixie/policy"
)

// rq reads the registries of failed jobs of RQ. An entry is the ID of a job, its score the second
// at which RQ forgets it. The body of a letter is the field data: the call as a compressed pickle,
// which is never read here, because reading a pickle runs code.
type rq struct {
	keys
	script *redis.Script
}

func newRQ(c Config) system { return &rq{keys(c.Prefix), newScript("rq")} }

func (r *rq) sets(ctx context.Context, c redis.UniversalClient) ([]deadSet, error) {
	return r.named(ctx, c, "failed:", "")
}

func (r *rq) read(ctx context.Context, c redis.UniversalClient, set deadSet, entries []redis.Z) ([]job, error) {
	ids := members(entries)
	found, err := hashes(ctx, c, prefixed(r.of("job:"), ids),
		[]string{"data", "description", "created_at", "enqueued_at", "ended_at", "exc_info", "worker_name",
			"rate_limit_key", "rate_limit_concurrency"})
	if err != nil {
		return nil, err
	}
	results := make([]*redis.XMessageSliceCmd, len(ids))
	pipe := c.Pipeline()
	for i, id := range ids {
		results[i] = pipe.XRevRangeN(ctx, r.of("results:"+id), "+", "-", maxLines)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	jobs := make([]job, len(entries))
	for i := range entries {
		list, err := results[i].Result()
		if err != nil && !isWrongType(err) {
			return nil, readError(set.key, err)
		}
		j := rqJob(found[i], list)
		j.id, j.queue, j.entry = ids[i], set.queue, entries[i]
		jobs[i] = j
	}
	return jobs, nil
}

// rqJob reads a job and its results, the newest first. Those that failed are its history.
func rqJob(s stored, results []redis.XMessage) job {
	f := s.fields
	j := job{body: []byte(f["data"]), damage: s.damage}
	j.kind, _, _ = strings.Cut(f["description"], "(")
	j.tell(headerDescription, f["description"])
	if key := f["rate_limit_key"]; key != "" {
		j.tell(headerLimit, key+", "+f["rate_limit_concurrency"]+" at once")
	}
	j.enqueued = cmp.Or(zoned(f["created_at"]), zoned(f["enqueued_at"]))
	var failures []nixie.Failure
	for _, r := range slices.Backward(results) {
		if failure, ok := rqResult(r); ok {
			failures = append(failures, failure)
		}
	}
	if n := len(failures); n > 0 {
		j.death, j.earlier = failures[n-1], failures[:n-1]
		j.firstFailed = failures[0].FailedAt
		j.death.Class, j.death.Reason = "", "" // its type tells them
	}
	j.death.FailedAt = cmp.Or(zoned(f["ended_at"]), j.death.FailedAt)
	if j.firstFailed.After(j.death.FailedAt) {
		j.firstFailed = j.death.FailedAt
	}
	j.death.Node = cmp.Or(j.death.Node, f["worker_name"])
	packed := j.death.Stack
	j.unpack = func(j *job, in *inflater) {
		for n := range j.earlier { // their stacks are not kept
			e := &j.earlier[n]
			e.Type, e.Text = task.PythonError(in.base64(e.Stack))
			e.Reason = cmp.Or(policy.ForeignReason(e.Type, e.Text), e.Reason)
			e.Type, e.Text = clipped(e.Type, nixie.MaxName), clipped(e.Text, maxFact)
		}
		if j.death.Stack = in.base64(packed); j.death.Stack == "" {
			j.death.Stack = in.text([]byte(f["exc_info"]))
		}
		j.death.Type, j.death.Text = task.PythonError(j.death.Stack)
	}
	return j
}

// Types of results of attempts that failed.
const (
	rqFailed   = "2"
	rqExceeded = "5" // the job asked for one more retry
)

// rqResult reads one result. Its ID begins with the time in milliseconds. The stack is packed.
func rqResult(m redis.XMessage) (f nixie.Failure, failed bool) {
	if kind := m.Values["type"]; kind != rqFailed && kind != rqExceeded {
		return f, false
	}
	ms, _, _ := strings.Cut(m.ID, "-")
	f = nixie.Failure{FailedAt: numeral(ms), Class: nixie.ClassUnknown, Reason: nixie.ReasonUnknown, Decision: nixie.Retry}
	if f.FailedAt.IsZero() {
		return f, false
	}
	f.Node, _ = m.Values["worker_name"].(string)
	f.Node = clipped(f.Node, nixie.MaxName)
	f.Stack, _ = m.Values["exc_string"].(string)
	return f, true
}

// numeral reads a time in decimal seconds or milliseconds since 1970; zero is none.
func numeral(text string) time.Time {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return time.Time{}
	}
	return moment(n)
}

const rqTime = "2006-01-02T15:04:05.000000Z"

func (r *rq) lay(back *returning) (deadSet, string) {
	return deadSet{key: r.of("failed:" + back.queue), queue: back.queue}, back.id
}

func (r *rq) back(_ context.Context, _ redis.UniversalClient, back *returning) (call, error) {
	if limit := back.fact(headerLimit); back.made && limit != "" {
		return call{}, nixie.Errorf(nixie.CodeInvalid, "job %s has the rate limit %s, which only RQ keeps: enqueue it with RQ",
			back.id, limit)
	}
	return call{r.script,
		[]string{r.of("job:" + back.id), r.of("failed:" + back.queue), r.of("queue:" + back.queue), r.of("queues")},
		[]any{back.id, back.queue, back.body, back.now.UTC().Format(rqTime), back.fact(headerDescription),
			back.created().Format(rqTime)}}, nil
}
