package redrive

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/policy"
)

// Destination sends dead records back to a broker: it tells the channel, and the changes on the
// way. Their source stays as it is. Zero fields mean the default.
type Destination struct {
	To broker.Publisher // required

	Channel     string // of all records; {source} stands for the channel where a record died, and is the default
	Quarantine  string // of records that were redriven too often; {source} as above; default: they stay
	MaxRedrives int    // a record that was redriven this often is not redriven; default [policy.DefaultMaxRedrives], −1 no limit

	// ByKey lets the key choose the partition, as for a new record. By default a record that goes
	// back to its channel goes to the partition where it died, while the channel has that: its
	// producer may choose partitions in another way.
	ByKey bool

	Drop []string              // names of headers to leave out; case does not count
	Set  []broker.RecordHeader // headers to set; they replace all headers of the same name

	// Transform changes a record: key, value, headers, or channel. If it returns an error the
	// record stays, and the others go on.
	Transform func(ctx context.Context, r *broker.Returning) error

	// Patience limits the wait for answers after the context has ended; default [DefaultPatience],
	// −1 none. A record without an answer is not done, although the broker may have it. The next
	// run sends it again, under the same [broker.HeaderRedriveID].
	Patience time.Duration

	Clock func() time.Time // default time.Now

	located bool   // server is known
	server  string // of To; empty: it does not tell
}

// DefaultPatience is the default of [Destination.Patience].
const DefaultPatience = 10 * time.Second

const toSource = "{source}"

func (r Destination) withDefaults() (Destination, error) {
	if r.To == nil {
		return r, nixie.Errorf(nixie.CodeInvalid, "redrive has no broker to send to: set To")
	}
	if r.Channel == "" {
		r.Channel = toSource
	}
	r.Clock = orSystem(r.Clock)
	switch {
	case r.Patience == 0:
		r.Patience = DefaultPatience
	case r.Patience == -1:
		r.Patience = 0
	case r.Patience < 0:
		return r, nixie.Errorf(nixie.CodeInvalid,
			"patience is %s: give a positive time, 0 for %s or −1 for none", r.Patience, DefaultPatience)
	}
	var err error
	if r.MaxRedrives, err = capOf(r.MaxRedrives); err != nil {
		return r, err
	}
	for _, name := range [...]struct{ what, value string }{{"channel to redrive to", r.Channel}, {"quarantine", r.Quarantine}} {
		if err := broker.CheckChannel(name.what, name.value); err != nil {
			return r, err
		}
	}
	return r, r.checkSet()
}

// checkSet refuses headers that only a redrive writes.
func (r *Destination) checkSet() error {
	for _, h := range r.Set {
		if broker.Ours(h.Name) {
			return nixie.Errorf(nixie.CodeInvalid, "header %s cannot be set: the redrive writes it", h.Name)
		}
	}
	return nil
}

// capOf reads MaxRedrives of a config: 0 is the default, and −1 is no cap. It returns 0 for no cap.
func capOf(most int) (int, error) {
	switch {
	case most == 0:
		return policy.DefaultMaxRedrives, nil
	case most == -1:
		return 0, nil
	case most < 0 || most > policy.MaxCount:
		return 0, nixie.Errorf(nixie.CodeInvalid, "max_redrives is %d: give a number from 1 to %d, or −1 for none", most, policy.MaxCount)
	}
	return most, nil
}

// Letters returns the function with which an [Engine] sends letters. Without a Quarantine the
// engine's cap counts. With one set [Config.SetsAside] too.
func (r Destination) Letters() (func(context.Context, []nixie.Letter) []error, error) {
	if r.Quarantine == "" {
		r.MaxRedrives = -1
	}
	r, err := r.withDefaults()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, letters []nixie.Letter) []error {
		if err := r.locate(ctx); err != nil {
			return slices.Repeat([]error{err}, len(letters))
		}
		list := make([]broker.Returning, len(letters))
		for i := range letters {
			list[i] = broker.FromLetter(&letters[i])
			if r.overCap(&list[i]) {
				list[i].AllHeaders = broker.LetterHeaders(&letters[i])
			}
		}
		_, answers := r.send(ctx, list, nil)
		return answers()
	}, nil
}

// locate asks To for its server, once.
func (r *Destination) locate(ctx context.Context) (err error) {
	if !r.located {
		r.server, err = broker.ServerOf(ctx, r.To)
		r.located = err == nil
	}
	return err
}

// returns reports whether a record goes back to the channel where it died, with its key. If a
// letter does not tell its server, that is assumed.
func (r *Destination) returns(p *broker.Publication, o *nixie.Origin, key []byte) bool {
	here := r.server == "" || o.Server == "" || o.Server == r.server
	return here && p.Channel == o.Channel && bytes.Equal(p.Key, key)
}

// send publishes records. It returns how many went, and a function that waits for the answers, also
// for a while after the end of ctx. It marks those that went into quarantine in quarantined, which
// may be nil.
func (r *Destination) send(ctx context.Context, list []broker.Returning, quarantined []bool) (n int, answers func() []error) {
	errs := make([]error, len(list))
	out := make([]broker.Publication, 0, len(list))
	at := make([]int, 0, len(list))
	for i := range list {
		p, aside, err := r.prepare(ctx, &list[i])
		if err != nil {
			errs[i] = err
			continue
		}
		if quarantined != nil {
			quarantined[i] = aside
		}
		out, at = append(out, p), append(at, i)
	}
	if len(out) == 0 {
		return 0, func() []error { return errs }
	}
	ctx, cancel := outlast(ctx, r.Patience)
	published := r.To.Publish(ctx, out)
	return len(out), func() []error {
		defer cancel()
		for n, err := range published() {
			errs[at[n]] = err
		}
		return errs
	}
}

// overCap reports whether a record was redriven too often.
func (r *Destination) overCap(back *broker.Returning) bool {
	return r.MaxRedrives > 0 && back.Redrives >= r.MaxRedrives
}

// prepare makes the record to send.
func (r *Destination) prepare(ctx context.Context, back *broker.Returning) (p broker.Publication, quarantined bool, err error) {
	if back.Lacks != "" {
		return p, false, nixie.Errorf(nixie.CodeConflict, "letter %s cannot be sent: %s", back.Letter, back.Lacks)
	}
	if r.overCap(back) {
		p, err = r.setAside(back)
		return p, true, err
	}
	if ctx.Err() != nil {
		return p, false, nixie.Errorf(nixie.CodeUnavailable, "letter %s: %w", back.Letter, ctx.Err())
	}
	back.Publication.Channel = broker.ChannelName(r.Channel, back.Origin.Channel)
	r.edit(back)
	key := back.Key
	if err := r.transform(ctx, back); err != nil {
		return p, false, nixie.Errorf(nixie.CodeOf(err), "letter %s: %w", back.Letter, err)
	}
	p = back.Redriven(r.Clock())
	if at := &back.Origin.Partition; !r.ByKey && *at >= 0 && r.returns(&p, &back.Origin, key) {
		p.Partition = at
	}
	return p, false, check(back, r.Channel, p.Channel)
}

// check refuses a channel to which a record must not go. Template is the setting that named it.
func check(back *broker.Returning, template, channel string) error {
	switch {
	case back.Cut:
		return nixie.Errorf(nixie.CodeInvalid, "letter %s was too large for the office, which has only a part of it: "+
			"redrive its record from the channel on which it lies", back.Letter)
	case back.Header(broker.HeaderNeverRan) != "":
		return nixie.Errorf(nixie.CodeInvalid, "letter %s never ran: %s", back.Letter, back.Header(broker.HeaderNeverRan))
	case back.FoundOn != "" && back.Header(broker.HeaderReview) != "":
		return nixie.Errorf(nixie.CodeConflict, "letter %s needs review: %s: adopt it into an office, look at it, then redrive it there "+
			"with force", back.Letter, back.Header(broker.HeaderReview))
	case back.Origin.Channel == "" && (channel == "" || strings.Contains(template, toSource)):
		return nixie.Errorf(nixie.CodeInvalid, "letter %s does not say where it came from: name the channel that it goes to", back.Letter)
	case channel == back.FoundOn:
		return nixie.Errorf(nixie.CodeInvalid, "letter %s would go to %s, where it lies: name another channel", back.Letter, channel)
	}
	return nil
}

// setAside makes the record for the quarantine. It has all headers, with the failures that it died
// of.
func (r *Destination) setAside(back *broker.Returning) (broker.Publication, error) {
	p := back.Publication
	if r.Quarantine == "" {
		return p, nixie.Errorf(nixie.CodeConflict,
			"letter %s was redriven %d times, the cap is %d: name a channel for the quarantine, or raise the cap",
			back.Letter, back.Redrives, r.MaxRedrives)
	}
	p.Headers = back.AllHeaders
	p.Channel = broker.ChannelName(r.Quarantine, back.Origin.Channel)
	return p, check(back, r.Quarantine, p.Channel)
}

// edit drops and sets headers.
func (r *Destination) edit(back *broker.Returning) {
	if len(r.Drop)+len(r.Set) == 0 {
		return
	}
	headers := slices.DeleteFunc(slices.Clone(back.Headers), func(h broker.RecordHeader) bool {
		return slices.ContainsFunc(r.Drop, func(name string) bool { return strings.EqualFold(name, h.Name) }) ||
			slices.ContainsFunc(r.Set, func(s broker.RecordHeader) bool { return s.Name == h.Name })
	})
	back.Headers = append(headers, r.Set...)
}

// Refuses reports whether an error of a [SendFunc] or an [EditFunc] is about one letter, so that
// the others go on. Its code is [nixie.CodeInvalid], [nixie.CodeConflict], [nixie.CodeNotFound],
// [nixie.CodeLimit] or [nixie.CodeDenied].
func Refuses(err error) bool {
	switch nixie.CodeOf(err) {
	case nixie.CodeInvalid, nixie.CodeConflict, nixie.CodeNotFound, nixie.CodeLimit, nixie.CodeDenied:
		return true
	}
	return false
}

// unanswered reports whether an error tells that a record was sent, with an unknown outcome.
func unanswered(err error) bool { return nixie.CodeOf(err) == nixie.CodeOutcomeUnknown }
