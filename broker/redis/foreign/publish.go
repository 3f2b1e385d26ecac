package foreign

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// Publisher puts redriven jobs back into their queues. Each job leaves its dead set and enters its
// queue in one step.
type Publisher struct {
	client redis.UniversalClient
	format string
	system system
	clock  func() time.Time
}

var _ broker.Publisher = (*Publisher)(nil)

// NewPublisher makes a publisher. Close closes the client, which must not repeat commands.
func NewPublisher(client redis.UniversalClient, c Config) (*Publisher, error) {
	s, err := c.system()
	if err != nil {
		return nil, err
	}
	p := &Publisher{client, c.Format, s, c.Clock}
	if p.clock == nil {
		p.clock = time.Now
	}
	return p, nil
}

// Close ends the publisher.
func (p *Publisher) Close() { _ = p.client.Close() } // nothing is under way

// Describe implements [broker.Publisher]. Redis knows nothing about queues that are empty.
func (*Publisher) Describe(_ context.Context, names []string) ([]broker.Channel, error) {
	out := make([]broker.Channel, len(names))
	for i, name := range names {
		out[i] = broker.Channel{Name: name, Retention: -1}
	}
	return out, nil
}

// Publish implements [broker.Publisher] for redriven records. It refuses, with
// [nixie.CodeConflict], a job that is no longer in its dead set, unless the same redrive has sent
// it before.
func (p *Publisher) Publish(ctx context.Context, list []broker.Publication) (answers func() []error) {
	errs := make([]error, len(list))
	for i := range list {
		errs[i] = p.send(ctx, &list[i])
	}
	return func() []error { return errs }
}

// returning is a job that goes back.
type returning struct {
	id, queue, set string
	score          string
	body           []byte
	now            time.Time
}

// call is a part of a script that sends a job back, with its keys and arguments. It has them as K
// and A, and returns one of the answers. It checks first, then writes what the server could
// refuse, so that nothing is done by halves.
type call struct {
	script *redis.Script
	keys   []string
	args   []any
}

// Answers of scripts.
const (
	answerSent   = "sent"
	answerGone   = "gone"   // it is not in the dead set
	answerLocked = "locked" // a worker has it
	answerBroken = "broken" // a key is of another type
	answerNo     = "no: "   // and why its system would not send it so
)

// newScript makes the script of a system. A repeat of a redrive whose answer was lost finds the
// mark of the first one, which Redis keeps for rememberSent.
func newScript(body string) *redis.Script {
	return redis.NewScript(`
local K, A = {}, {}
for n = 2, #KEYS do K[n - 1] = KEYS[n] end
for n = 2, #ARGV do A[n - 1] = ARGV[n] end
local function kind(key)
  return redis.call("TYPE", key).ok
end
local function is(key, want)
  local has = kind(key)
  return has == "none" or has == want
end
local function back()
` + body + `
end
if redis.call("EXISTS", KEYS[1]) == 1 then return "sent" end
local answer = back()
if answer == "sent" then redis.call("SET", KEYS[1], "1", "PX", ARGV[1]) end
return answer`)
}

// rememberSent bounds the time for which the key nixie:sent:REDRIVE stays.
const rememberSent = 24 * time.Hour

func (p *Publisher) send(ctx context.Context, pub *broker.Publication) error {
	mark, r, err := p.read(pub)
	if err != nil {
		return err
	}
	do, err := p.system.back(ctx, p.client, r)
	if err != nil {
		return err
	}
	answer, err := do.script.Run(ctx, p.client, append([]string{"nixie:sent:" + mark}, do.keys...),
		append([]any{rememberSent.Milliseconds()}, do.args...)...).Text()
	if err != nil {
		return sendError(r.id, err)
	}
	if why, refused := strings.CutPrefix(answer, answerNo); refused {
		return nixie.Errorf(nixie.CodeConflict, "job %s %s", r.id, why)
	}
	switch answer {
	case answerSent:
		return nil
	case answerGone:
		return nixie.Errorf(nixie.CodeConflict, "job %s is no longer in %s: it was sent back or removed there; discard its letter",
			r.id, r.set)
	case answerLocked:
		return nixie.Errorf(nixie.CodeConflict, "job %s is locked by a worker: try again later", r.id)
	}
	return nixie.Errorf(nixie.CodeInvalid, "job %s: a key of queue %q is of another type than %s has there", r.id, r.queue, p.format)
}

// read takes from a redriven record what the job needs. A job has no headers, so one that was added
// on the way is refused.
func (p *Publisher) read(pub *broker.Publication) (mark string, r *returning, err error) {
	r = &returning{id: string(pub.Key), queue: pub.Channel, body: pub.Value, now: p.clock()}
	for _, h := range pub.Headers {
		switch value := string(h.Value); {
		case h.Name == broker.HeaderRedriveID:
			mark = value
		case h.Name == headerSystem && value != p.format:
			return "", nil, nixie.Errorf(nixie.CodeInvalid, "job %s is one of %s: send it to format=%s", r.id, value, value)
		case h.Name == headerDamage:
			return "", nil, nixie.Errorf(nixie.CodeInvalid, "job %s is damaged, and goes back to no queue: %s", r.id, value)
		case h.Name == headerSet:
			r.set = value
		case h.Name == headerScore:
			r.score = value
		case !broker.Ours(h.Name) && !strings.HasPrefix(h.Name, "job-"):
			return "", nil, nixie.Errorf(nixie.CodeInvalid, "job %s cannot have header %s: a job of %s has none", r.id, h.Name, p.format)
		}
	}
	switch {
	case !slices.ContainsFunc(pub.Headers, func(h broker.RecordHeader) bool { return h.Name == headerSystem }):
		return "", nil, nixie.Errorf(nixie.CodeInvalid, "message %q is no job of %s: send it to another broker", r.id, p.format)
	case mark == "":
		return "", nil, nixie.Errorf(nixie.CodeInvalid, "job %s would be put aside, which a job queue cannot: leave --quarantine out", r.id)
	}
	return mark, r, nil
}

// sendError translates an error of Redis. If no answer came, the job may have been sent.
func sendError(id string, err error) error {
	var said redis.Error
	var op *net.OpError
	if errors.As(err, &said) || errors.As(err, &op) && op.Op == "dial" {
		return nixie.Errorf(nixie.CodeUnavailable, "job %s: %w", id, err)
	}
	return nixie.Errorf(nixie.CodeOutcomeUnknown, "job %s: no answer came, and it may be sent: %w", id, err)
}
