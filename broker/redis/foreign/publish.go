package foreign

import (
	"cmp"
	"context"
	"crypto/sha1" //nolint:gosec // a script of Redis has no better sum to compare
	"embed"
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
	site   broker.Site // without the server, which is asked for each time
	clock  func() time.Time
}

var _ broker.Publisher = (*Publisher)(nil)

// NewPublisher makes a publisher. Close closes the client, which must not repeat commands.
func NewPublisher(client redis.UniversalClient, c Config) (*Publisher, error) {
	s, err := c.system()
	if err != nil {
		return nil, err
	}
	p := &Publisher{client, c.Format, s, c.database(client), c.Clock}
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
// sent it before. At another site than that of its death a job is made anew, if its ID is free
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
	id, queue, lain string // lain: key of the set where it lay
	score, mark     string
	body            []byte
	now             time.Time
	headers         []broker.RecordHeader
	origin          nixie.Origin
	answer          *error

	set   deadSet // where to look for its death
	there *job    // that death
	made  bool    // it is made anew, at another site
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
func (r *returning) created() time.Time { return cmp.Or(r.origin.Timestamp, r.now).UTC() }

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
// and A, and returns an answer. It checks first, then writes what the server could
// refuse, so that nothing is done by halves.
type call struct {
	script *redis.Script
	keys   []string
	args   []any
}

//go:embed *.lua
var scripts embed.FS

// newScript makes the script of a system: its own part, within the part of all.
func newScript(system string) *redis.Script {
	all, _ := scripts.ReadFile("back.lua") // both are there: a test runs each script
	own, _ := scripts.ReadFile(system + ".lua")
	return redis.NewScript(strings.Replace(string(all), "-- the script of the job queue", string(own), 1))
}

// rememberSent bounds the time for which the key nixie:sent:REDRIVE stays.
const rememberSent = 24 * time.Hour

// look finds the deaths of jobs where they lay, and refuses those that are not there.
func (p *Publisher) look(ctx context.Context, group []*returning) {
	pipe, at := p.client.Pipeline(), p.site
	server, finds := pipe.Get(ctx, serverKey), make([]func() ([]redis.Z, error), len(group))
	for i, r := range group {
		r.set, finds[i] = p.find(ctx, pipe, r)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	at.Server = named(server)
	entries, found := map[deadSet][]redis.Z{}, map[deadSet]map[string][]job{}
	for i, r := range group {
		if r.made = !at.Has(&r.origin); r.made {
			continue
		}
		some, err := finds[i]()
		if err != nil && !errors.Is(err, redis.Nil) {
			*r.answer = readError(r.set.key, err)
		}
		entries[r.set] = append(entries[r.set], some...)
	}
	for _, r := range group {
		if r.made || *r.answer != nil {
			continue
		}
		if found[r.set] == nil {
			found[r.set] = map[string][]job{}
			var jobs []job
			if len(entries[r.set]) > 0 {
				jobs, *r.answer = p.system.read(ctx, p.client, r.set, entries[r.set])
			}
			for _, j := range jobs {
				found[r.set][j.id] = append(found[r.set][j.id], j)
			}
		}
		if *r.answer == nil {
			*r.answer = r.choose(found[r.set][r.id], at)
		}
	}
}

// find asks for the entries that may be the death of a job.
func (p *Publisher) find(ctx context.Context, pipe redis.Pipeliner, r *returning) (deadSet, func() ([]redis.Z, error)) {
	set, member := p.system.lay(r)
	switch {
	case set.pattern != "":
		return set, func() ([]redis.Z, error) { return []redis.Z{{Member: member}}, nil }
	case member == "":
		score := cmp.Or(r.score, "inf")
		return set, pipe.ZRangeByScoreWithScores(ctx, set.key, &redis.ZRangeBy{Min: score, Max: score}).Result
	}
	score := pipe.ZScore(ctx, set.key, member)
	return set, func() ([]redis.Z, error) {
		if score.Err() != nil {
			return nil, score.Err()
		}
		return []redis.Z{{Member: member, Score: score.Val()}}, nil
	}
}

// choose takes the death of the job among those of its ID.
func (r *returning) choose(found []job, at broker.Site) error {
	for i := range found {
		if found[i].died(&r.origin) {
			r.there = &found[i]
			return nil
		}
	}
	if len(found) == 0 {
		return nixie.Errorf(nixie.CodeConflict, "job %s does not lie in %s of %v: it was sent back or removed, or never was there. "+
			"Its letter came from %v. Nothing was changed", r.id, r.set.key, at, broker.SiteOf(&r.origin))
	}
	hash := nixie.HashBody(found[0].body)
	return nixie.Errorf(nixie.CodeConflict, "job %s in %s of %v is another death, %s. Its letter tells of the one %s, from %v. "+
		"Nothing was changed; adopt again to take in what lies there", r.id, r.set.key, at,
		broker.DeathText(found[0].diedAt(), hash[:]), broker.DeathText(r.origin.Offset, r.origin.BodyHash), broker.SiteOf(&r.origin))
}

// died reports whether this is the death of an origin. Letters of earlier versions do not know the
// hash.
func (j *job) died(o *nixie.Origin) bool {
	hash := nixie.HashBody(j.body)
	return j.damage == "" && j.diedAt() == o.Offset && (len(o.BodyHash) == 0 || string(hash[:]) == string(o.BodyHash))
}

// send sends the jobs back. For one whose death is not there the script only looks for the mark.
func (p *Publisher) send(ctx context.Context, group []*returning) {
	pipe, sent := p.client.Pipeline(), map[*returning]func() (any, error){}
	for _, r := range group {
		if *r.answer != nil && nixie.CodeOf(*r.answer) != nixie.CodeConflict {
			continue
		}
		do, err := p.system.back(ctx, p.client, r)
		if err != nil {
			*r.answer = cmp.Or(*r.answer, err)
			continue
		}
		sum := sha1.Sum(r.stored()) //nolint:gosec // as above
		args := append([]any{rememberSent.Milliseconds(), r.witness(), fmt.Sprintf("%x", sum)}, do.args...)
		keys := append([]string{"nixie:sent:" + r.mark}, do.keys...)
		answer := pipe.EvalSha(ctx, do.script.Hash(), keys, args...)
		sent[r] = func() (any, error) {
			if redis.HasErrorPrefix(answer.Err(), "NOSCRIPT") {
				return do.script.Run(ctx, p.client, keys, args...).Result()
			}
			return answer.Result()
		}
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for _, r := range group {
		if answer := sent[r]; answer != nil {
			text, err := answer()
			p.answered(r, fmt.Sprint(text), err)
		}
	}
}

// witness tells the script which entry has to lie there, by its score.
func (r *returning) witness() string {
	switch {
	case r.made:
		return "new"
	case r.there == nil:
		return "gone"
	case r.there.entry.Member == nil:
		return ""
	}
	return seconds(r.there.entry.Score)
}

// answered translates the answer of a script.
func (p *Publisher) answered(r *returning, answer string, err error) {
	why, refused := strings.CutPrefix(answer, "no: ") // why its system would not send it so
	switch refusal := *r.answer; {
	case err != nil:
		*r.answer = sendError(r.id, err)
	case answer == "sent":
		*r.answer = nil
	case refusal != nil:
	case refused:
		*r.answer = nixie.Errorf(nixie.CodeConflict, "job %s %s", r.id, why)
	case answer == "gone" || answer == "other": // another death lies there
		*r.answer = nixie.Errorf(nixie.CodeConflict, "job %s changed there while it was looked at, and nothing was done: try again", r.id)
	case answer == "taken":
		*r.answer = nixie.Errorf(nixie.CodeConflict, "job %s died elsewhere, in %v. Its ID is that of another job here, so nothing was "+
			"changed", r.id, broker.SiteOf(&r.origin))
	case answer == "locked":
		*r.answer = nixie.Errorf(nixie.CodeConflict, "job %s is locked by a worker: try again later", r.id)
	default:
		*r.answer = nixie.Errorf(nixie.CodeInvalid, "job %s: a key of queue %q is of another type than %s has there",
			r.id, r.queue, p.format)
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
			r.lain = value
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
