package foreign

import (
	"context"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie"
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
	if j.enqueued = zoned(f["created_at"]); j.enqueued.IsZero() {
		j.enqueued = zoned(f["enqueued_at"])
	}
	var failures []nixie.Failure
	for _, r := range results {
		if failure, ok := rqResult(r); ok {
			failures = append([]nixie.Failure{failure}, failures...)
		}
	}
	if n := len(failures); n > 0 {
		j.death, j.earlier = failures[n-1], failures[:n-1]
		j.firstFailed = failures[0].FailedAt
		j.death.Class, j.death.Reason = "", "" // its type tells them
	}
	if ended := zoned(f["ended_at"]); !ended.IsZero() {
		j.death.FailedAt = ended
	}
	if j.firstFailed.After(j.death.FailedAt) {
		j.firstFailed = j.death.FailedAt
	}
	if trace, err := inflate([]byte(f["exc_info"])); err == nil && j.death.Stack == "" {
		j.death.Stack = string(trace)
	}
	if j.death.Node == "" {
		j.death.Node = f["worker_name"]
	}
	j.death.Type, j.death.Text = pythonError(j.death.Stack)
	return j
}

// Types of results of attempts that failed.
const (
	rqFailed   = "2"
	rqExceeded = "5" // the job asked for one more retry
)

// rqResult reads one result. Its ID begins with the time in milliseconds.
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
	packed, _ := m.Values["exc_string"].(string)
	if data, err := base64.StdEncoding.DecodeString(packed); err == nil {
		if trace, err := inflate(data); err == nil {
			f.Stack = string(trace)
			f.Type, f.Text = pythonError(f.Stack)
			f.Type = clipped(f.Type, nixie.MaxName)
		}
	}
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
