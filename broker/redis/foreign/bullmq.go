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
	"github.com/nixie-go/nixie/internal/task"
)

// bullmq reads the failed jobs of BullMQ, and of Bull 4. An entry is the ID of a job, its score
// milliseconds. The body of a letter is the data of the job.
type bullmq struct {
	keys
	script *redis.Script
}

func newBullMQ(c Config) system { return &bullmq{keys(c.Prefix), newScript("bullmq")} }

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
	j.death.FailedAt = cmp.Or(numeral(f["finishedOn"]), moment(score))
	n, _ := strconv.ParseFloat(cmp.Or(f["atm"], f["attemptsMade"]), 64)
	j.attempts = task.Count(n)
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

func (b *bullmq) lay(r *returning) (deadSet, string) {
	return deadSet{key: b.of(r.queue + ":failed"), queue: r.queue}, r.id
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
