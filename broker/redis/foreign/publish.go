package foreign

import (
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
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
	place  place // without the server, which is asked for each time
	clock  func() time.Time
}

var _ broker.Publisher = (*Publisher)(nil)

// NewPublisher makes a publisher. Close closes the client, which must not repeat commands.
func NewPublisher(client redis.UniversalClient, c Config) (*Publisher, error) {
	s, err := c.system()
	if err != nil {
		return nil, err
	}
	p := &Publisher{client, c.Format, s, placed(client, c), c.Clock}
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
// [nixie.CodeConflict], a job whose death no longer lies where it did, unless the same redrive has
// sent it before. At another place than that of its death a job is made anew, if its ID is free
// there.
func (p *Publisher) Publish(ctx context.Context, list []broker.Publication) (answers func() []error) {
	errs := make([]error, len(list))
	for at := 0; at < len(list); {
		var group []*returning
		for size := 0; at < len(list) && len(group) < readAtOnce && size < maxPageBytes; at++ {
			r, err := p.read(&list[at])
			if errs[at] = err; err == nil {
				r.answer = &errs[at]
				group = append(group, r)
			}
			size += len(list[at].Value)
		}
		p.look(ctx, group)
		p.send(ctx, group)
	}
	return func() []error { return errs }
}

// returning is a job that goes back.
type returning struct {
	id, queue, set string
	score          string
	body           []byte
	now            time.Time
	headers        []broker.RecordHeader
	origin         nixie.Origin
	mark           string
	answer         *error

	there *job // the death that lies there
	made  bool // it is made anew, at another place
}

// fact returns a header of the job.
func (r *returning) fact(name string) string {
	for _, h := range r.headers {
		if h.Name == name {
			return string(h.Value)
		}
	}
	return ""
}

// created returns when the job was made, now if that is not known.
func (r *returning) created() time.Time {
	if r.origin.Timestamp.IsZero() {
		return r.now.UTC()
	}
	return r.origin.Timestamp.UTC()
}

// stored returns what lies there, or for a new job its body.
func (r *returning) stored() []byte {
	switch {
	case r.there == nil:
		return r.body
	case r.there.stored != nil:
		return r.there.stored
	}
	return r.there.body
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
	answerOther  = "other"  // another death lies there
	answerTaken  = "taken"  // the ID of the new job is that of another one
	answerLocked = "locked" // a worker has it
	answerNo     = "no: "   // and why its system would not send it so
)

// newScript makes the script of a system. The death that lies there must be the one that was read:
// score and sum are those of its entry and of what is stored. A repeat of a redrive whose answer was
// lost finds the mark of the first one, which Redis keeps for rememberSent.
func newScript(body string) *redis.Script {
	return redis.NewScript(`
local K, A = {}, {}
for n = 2, #KEYS do K[n - 1] = KEYS[n] end
for n = 4, #ARGV do A[n - 3] = ARGV[n] end
local score, sum = ARGV[2], ARGV[3]
local new = score == "new"
local function kind(key)
  return redis.call("TYPE", key).ok
end
local function is(key, want)
  local has = kind(key)
  return has == "none" or has == want
end
local function no_death(has, stored, taken)
  if new then return taken and "taken" end
  if not has then return "gone" end
  if score ~= "" and tonumber(has) ~= tonumber(score) or redis.sha1hex(stored or "") ~= sum then return "other" end
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

// look finds the deaths of jobs where they lay, and refuses those that are not there.
func (p *Publisher) look(ctx context.Context, group []*returning) {
	pipe, at := p.client.Pipeline(), p.place
	server := pipe.Get(ctx, serverKey)
	sets, finds := make([]deadSet, len(group)), make([]func() ([]redis.Z, error), len(group))
	for i, r := range group {
		sets[i], finds[i] = p.system.find(ctx, pipe, r)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	at.server = named(server.Val())
	entries, waiting := map[deadSet][]redis.Z{}, map[deadSet][]*returning{}
	for i, r := range group {
		if r.made = !at.has(&r.origin); r.made {
			continue
		}
		some, err := finds[i]()
		if err != nil {
			*r.answer = err
			continue
		}
		entries[sets[i]], waiting[sets[i]] = append(entries[sets[i]], some...), append(waiting[sets[i]], r)
	}
	for set, list := range waiting {
		found := map[string][]job{}
		if len(entries[set]) > 0 {
			jobs, err := p.system.read(ctx, p.client, set, entries[set])
			for _, j := range jobs {
				found[j.id] = append(found[j.id], j)
			}
			for _, r := range list {
				*r.answer = err
			}
		}
		for _, r := range list {
			if *r.answer == nil {
				*r.answer = r.choose(found[r.id], set, at)
			}
		}
	}
	p.forgive(ctx, group)
}

// choose takes the death of the job among those of its ID.
func (r *returning) choose(found []job, set deadSet, at place) error {
	from := place{r.origin.Server, r.origin.Database, r.origin.Prefix}
	for i := range found {
		if found[i].died(&r.origin) {
			r.there = &found[i]
			return nil
		}
	}
	if len(found) == 0 {
		return nixie.Errorf(nixie.CodeConflict, "job %s does not lie in %s of %v: it was sent back or removed, or never was there. "+
			"Its letter came from %v. Nothing was changed", r.id, set.key, at, from)
	}
	hash := nixie.HashBody(found[0].body)
	return nixie.Errorf(nixie.CodeConflict, "job %s in %s of %v is another death, %s. Its letter tells of the one %s, from %v. "+
		"Nothing was changed; adopt again to take in what lies there", r.id, set.key, at, death(found[0].diedAt(), hash[:]),
		death(r.origin.Offset, r.origin.BodyHash), from)
}

// died reports whether this is the death of an origin. Letters of earlier versions do not know the
// hash.
func (j *job) died(o *nixie.Origin) bool {
	hash := nixie.HashBody(j.body)
	return j.damage == "" && j.diedAt() == o.Offset && (len(o.BodyHash) == 0 || string(hash[:]) == string(o.BodyHash))
}

// forgive takes a refusal back if the same redrive has sent the job before.
func (p *Publisher) forgive(ctx context.Context, group []*returning) {
	pipe, marks := p.client.Pipeline(), map[*returning]*redis.IntCmd{}
	for _, r := range group {
		if nixie.CodeOf(*r.answer) == nixie.CodeConflict {
			marks[r] = pipe.Exists(ctx, markKey+r.mark)
		}
	}
	if len(marks) == 0 {
		return
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for r, mark := range marks {
		if n, err := mark.Result(); err != nil {
			*r.answer = sendError(r.id, err)
		} else if n == 1 {
			*r.answer = nil
		}
	}
}

const markKey = "nixie:sent:"

// send sends the jobs back that no one has refused.
func (p *Publisher) send(ctx context.Context, group []*returning) {
	pipe, sent := p.client.Pipeline(), map[*returning]func() (string, error){}
	for _, r := range group {
		if *r.answer != nil || r.there == nil && !r.made {
			continue
		}
		do, err := p.system.back(ctx, p.client, r)
		if err != nil {
			*r.answer = err
			continue
		}
		score, sum := "new", ""
		if r.there != nil {
			score, sum = "", fmt.Sprintf("%x", sha1.Sum(r.stored()))
			if r.there.entry.Member != nil {
				score = seconds(r.there.entry.Score)
			}
		}
		keys := append([]string{markKey + r.mark}, do.keys...)
		args := append([]any{rememberSent.Milliseconds(), score, sum}, do.args...)
		answer := pipe.EvalSha(ctx, do.script.Hash(), keys, args...)
		sent[r] = func() (string, error) {
			if redis.HasErrorPrefix(answer.Err(), "NOSCRIPT") {
				return do.script.Run(ctx, p.client, keys, args...).Text()
			}
			return answer.Text()
		}
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for _, r := range group {
		if answer := sent[r]; answer != nil {
			*r.answer = p.answered(r)(answer())
		}
	}
}

// answered translates the answer of a script.
func (p *Publisher) answered(r *returning) func(string, error) error {
	return func(answer string, err error) error {
		why, refused := strings.CutPrefix(answer, answerNo)
		switch {
		case err != nil:
			return sendError(r.id, err)
		case answer == answerSent:
			return nil
		case refused:
			return nixie.Errorf(nixie.CodeConflict, "job %s %s", r.id, why)
		case answer == answerGone || answer == answerOther:
			return nixie.Errorf(nixie.CodeConflict, "job %s changed there while it was looked at, and nothing was done: try again", r.id)
		case answer == answerTaken:
			return nixie.Errorf(nixie.CodeConflict, "job %s died elsewhere, in %v. Its ID is that of another job here, so nothing was changed",
				r.id, place{r.origin.Server, r.origin.Database, r.origin.Prefix})
		case answer == answerLocked:
			return nixie.Errorf(nixie.CodeConflict, "job %s is locked by a worker: try again later", r.id)
		}
		return nixie.Errorf(nixie.CodeInvalid, "job %s: a key of queue %q is of another type than %s has there", r.id, r.queue, p.format)
	}
}

// read takes from a redriven record what the job needs. A job has no headers, so one that was added
// on the way is refused.
func (p *Publisher) read(pub *broker.Publication) (*returning, error) {
	r := &returning{id: string(pub.Key), queue: pub.Channel, body: pub.Value, now: p.clock(), headers: pub.Headers}
	if r.origin.Offset = -1; pub.Origin != nil {
		r.origin = *pub.Origin
	}
	for _, h := range pub.Headers {
		switch value := string(h.Value); {
		case h.Name == broker.HeaderRedriveID:
			r.mark = value
		case h.Name == headerSystem && value != p.format:
			return nil, nixie.Errorf(nixie.CodeInvalid, "job %s is one of %s: send it to format=%s", r.id, value, value)
		case h.Name == headerDamage:
			return nil, nixie.Errorf(nixie.CodeInvalid, "job %s is damaged, and goes back to no queue: %s", r.id, value)
		case h.Name == headerSet:
			r.set = value
		case h.Name == headerScore:
			r.score = value
		case !broker.Ours(h.Name) && !strings.HasPrefix(h.Name, "job-"):
			return nil, nixie.Errorf(nixie.CodeInvalid, "job %s cannot have header %s: a job of %s has none", r.id, h.Name, p.format)
		}
	}
	switch {
	case !slices.ContainsFunc(pub.Headers, func(h broker.RecordHeader) bool { return h.Name == headerSystem }):
		return nil, nixie.Errorf(nixie.CodeInvalid, "message %q is no job of %s: send it to another broker", r.id, p.format)
	case r.mark == "":
		return nil, nixie.Errorf(nixie.CodeInvalid, "job %s would be put aside, which a job queue cannot: leave --quarantine out", r.id)
	}
	return r, nil
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
