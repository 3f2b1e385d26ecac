package foreign

import (
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/task"
)

// asynq reads the archived tasks of asynq. An entry is the ID of a task, its score seconds; the
// field msg of its hash holds the task as a message of protocol buffers. The body of a letter is
// the payload of that message.
type asynq struct {
	keys
	script *redis.Script
}

func newAsynq(c Config) system { return &asynq{keys(c.Prefix), newScript("asynq")} }

func (a *asynq) queue(name, key string) string { return a.of("{" + name + "}:" + key) }

func (a *asynq) sets(ctx context.Context, c redis.UniversalClient) ([]deadSet, error) {
	queues, err := c.SMembers(ctx, a.of("queues")).Result()
	if err != nil {
		return nil, readError(a.of("queues"), err)
	}
	slices.Sort(queues)
	all := make([]deadSet, len(queues))
	for i, q := range queues {
		all[i] = deadSet{key: a.queue(q, "archived"), queue: q}
	}
	return all, nil
}

func (a *asynq) read(ctx context.Context, c redis.UniversalClient, set deadSet, entries []redis.Z) ([]job, error) {
	tasks, err := hashes(ctx, c, prefixed(a.queue(set.queue, "t:"), members(entries)), []string{"msg"})
	if err != nil {
		return nil, err
	}
	jobs := make([]job, len(entries))
	for i, id := range members(entries) {
		j := asynqJob([]byte(tasks[i].fields["msg"]), tasks[i].damage)
		j.id, j.queue, j.death.FailedAt, j.entry = id, set.queue, moment(entries[i].Score), entries[i]
		j.stored = []byte(tasks[i].fields["msg"])
		if j.firstFailed.After(j.death.FailedAt) {
			j.firstFailed = j.death.FailedAt
		}
		jobs[i] = j
	}
	return jobs, nil
}

// Fields of asynq's TaskMessage. Others are kept as they are.
const (
	asynqType    = 1
	asynqPayload = 2
	asynqRetry   = 5
	asynqRetried = 6
	asynqError   = 7
	asynqHeaders = 15
)

// asynqJob reads a task. asynq counts retries, and the last attempt is no retry.
func asynqJob(msg []byte, damage string) job {
	j := job{body: []byte{}, damage: damage}
	if damage != "" {
		return j
	}
	whole := eachField(msg, func(n protowire.Number, value []byte, number uint64, _ []byte) {
		switch n {
		case asynqType:
			j.kind = string(value)
		case asynqPayload:
			j.body = slices.Clone(value)
		case asynqRetried:
			j.attempts = task.Count(float64(int32(number)) + 1)
		case asynqError:
			j.death.Text = clipped(string(value), nixie.MaxFailureText)
		case asynqHeaders:
			var name, text string
			if eachField(value, func(n protowire.Number, value []byte, _ uint64, _ []byte) {
				switch n {
				case 1:
					name = string(value)
				case 2:
					text = string(value)
				}
			}) {
				j.tell(headerHeader, name+": "+text)
			}
		}
	})
	if !whole {
		j = job{body: msg, damage: "its message is no message of asynq"}
	}
	if j.damage == "" && j.attempts == 0 {
		j.attempts = 1 // a field that is 0 is not written
	}
	return j
}

// eachField calls take for each field of a message of protocol buffers, with its bytes or its
// number, and the whole field as it was written. It reports whether all of the message could be
// read.
func eachField(msg []byte, take func(n protowire.Number, value []byte, number uint64, field []byte)) bool {
	for len(msg) > 0 {
		n, kind, tag := protowire.ConsumeTag(msg)
		if tag < 0 {
			return false
		}
		size := protowire.ConsumeFieldValue(n, kind, msg[tag:])
		if size < 0 {
			return false
		}
		var value []byte
		var number uint64
		switch kind {
		case protowire.BytesType:
			value, _ = protowire.ConsumeBytes(msg[tag:])
		case protowire.VarintType:
			number, _ = protowire.ConsumeVarint(msg[tag:])
		}
		take(n, value, number, msg[:tag+size])
		msg = msg[tag+size:]
	}
	return true
}

func (a *asynq) lay(r *returning) (deadSet, string) {
	return deadSet{key: a.queue(r.queue, "archived"), queue: r.queue}, r.id
}

func (a *asynq) back(_ context.Context, _ redis.UniversalClient, r *returning) (call, error) {
	msg := r.stored()
	if r.there == nil {
		msg = asynqNew(r)
	}
	return call{a.script, []string{a.queue(r.queue, "t:"+r.id), a.queue(r.queue, "pending"), a.queue(r.queue, "archived"), a.of("queues")},
		[]any{r.id, asynqWith(msg, r.body), r.queue}}, nil
}

// asynqNew makes the message of a task with asynq's own defaults for what a letter does not tell:
// 25 retries, 30 minutes.
func asynqNew(r *returning) []byte {
	text := func(msg []byte, n protowire.Number, value string) []byte {
		return protowire.AppendString(protowire.AppendTag(msg, n, protowire.BytesType), value)
	}
	msg := text(text(text(text(nil, 1, r.fact(headerType)), 2, string(r.body)), 3, r.id), 4, r.queue)
	msg = protowire.AppendVarint(protowire.AppendTag(msg, asynqRetry, protowire.VarintType), 25)
	msg = protowire.AppendVarint(protowire.AppendTag(msg, 8, protowire.VarintType), 1800)
	for _, h := range r.headers {
		if name, value, ok := strings.Cut(string(h.Value), ": "); ok && h.Name == headerHeader {
			msg = text(msg, asynqHeaders, string(text(text(nil, 1, name), 2, value)))
		}
	}
	return msg
}

// asynqWith returns a message with another payload, or the message itself if it has that payload.
func asynqWith(msg, payload []byte) []byte {
	if asynqJob(msg, "").damage != "" {
		return msg
	}
	var out, had []byte
	_ = eachField(msg, func(n protowire.Number, value []byte, _ uint64, field []byte) {
		if n == asynqPayload {
			had = value
			return
		}
		out = append(out, field...)
	})
	if string(had) == string(payload) {
		return msg
	}
	return protowire.AppendBytes(protowire.AppendTag(out, asynqPayload, protowire.BytesType), payload)
}
