package postgres_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
	"github.com/nixie-go/nixie/store/storetest"
)

// cutting is a store behind a wire, and the same store without it.
type cutting struct {
	*testing.T
	*wire
	clock *storetest.Clock
	store *postgres.Store
	truth *postgres.Store
	count int
}

func newCutting(t *testing.T, answerWait time.Duration) *cutting {
	t.Helper()
	c := &cutting{T: t, wire: newWire(t), clock: storetest.NewClock()}
	schema := newSchema(t)
	t.Cleanup(func() { dropSchema(t, schema) })
	open := func(url, owner string, wait time.Duration) *postgres.Store {
		s, err := postgres.Open(t.Context(), url, postgres.Options{Schema: schema, Clock: c.clock.Now, Owner: owner, AnswerWait: wait,
			NoListen: true}) // so that nothing else passes the wire
		must(t, err)
		t.Cleanup(func() { must(t, s.Close()) })
		return s
	}
	c.truth, c.store = open(server.URL, "truth", 0), open(c.url, "cut", answerWait)
	return c
}

// exchange is a call that changes one message.
type exchange struct {
	name  string
	ready []nixie.Verb // what is done to the message before
	call  func(c *cutting, m *cut) error
	after func(r *store.Record) bool // whether it was done, and once
}

// cut is the message of a call that is cut.
type cut struct {
	queue, key string
	d          *nixie.Delivery
	letter     nixie.ID
}

// claimed stands among verbs for a claim.
const claimed nixie.Verb = "claimed"

func exchanges() []exchange {
	settle := func(verb nixie.Verb) func(*cutting, *cut) error {
		return func(c *cutting, m *cut) error { return c.settle(c.store, m.d, verb) }
	}
	return []exchange{
		{"enqueue", nil, func(c *cutting, m *cut) error {
			_, err := c.store.Enqueue(c.Context(), nixie.Message{Queue: m.queue, Key: m.key, DedupeKey: m.key, Stream: "s"})
			return err
		}, func(r *store.Record) bool { return r.State == nixie.Queued }},
		{"enqueue plain", nil, func(c *cutting, m *cut) error {
			if c.there(m) { // with no key of its own, it is for the caller to look
				return nil
			}
			_, err := c.store.Enqueue(c.Context(), nixie.Message{Queue: m.queue, Key: m.key})
			return err
		}, func(r *store.Record) bool { return r.State == nixie.Queued }},
		{"claim", []nixie.Verb{}, func(c *cutting, m *cut) error {
			ds, err := c.store.Claim(c.Context(), m.queue, nixie.Want{Max: 1, Lease: time.Minute})
			if err == nil && len(ds) == 0 { // what was claimed without an answer comes back by time
				c.clock.Advance(2 * time.Minute)
				ds, err = c.store.Claim(c.Context(), m.queue, nixie.Want{Max: 1, Lease: time.Minute})
			}
			if len(ds) == 1 {
				m.d = ds[0]
			}
			return err
		}, func(r *store.Record) bool { return r.State == nixie.Leased && r.Deliveries <= 2 }},
		{"complete", []nixie.Verb{claimed}, settle(nixie.Complete),
			func(r *store.Record) bool { return r.State == nixie.Succeeded && r.Deliveries == 1 }},
		{"exchange", []nixie.Verb{claimed}, func(c *cutting, m *cut) error {
			errs, _, err := c.store.Features().Exchange(c.Context(), []nixie.Settlement{{Delivery: m.d, Verb: nixie.Complete}}, m.queue,
				nixie.Want{Max: 1, Lease: time.Minute})
			if nixie.CodeOf(err) == nixie.CodeInternal {
				return err
			}
			return errs[0]
		}, func(r *store.Record) bool { return r.State == nixie.Succeeded && r.Deliveries == 1 }},
		{"retry", []nixie.Verb{claimed}, settle(nixie.Retry), func(r *store.Record) bool {
			return r.State == nixie.Queued &&
				len(r.History) == 1
		}},
		{"bury", []nixie.Verb{claimed}, settle(nixie.Bury), func(r *store.Record) bool {
			return r.State == nixie.Dead &&
				len(r.History) == 1
		}},
		{"redrive", []nixie.Verb{claimed, nixie.Bury}, func(c *cutting, m *cut) error {
			return c.store.Resolve(c.Context(), []store.Resolution{{Letter: m.letter, Event: store.OnRedrive, Actor: "ann",
				Reason: "fixed"}})[0]
		}, func(r *store.Record) bool { return r.State == nixie.Queued && r.Generation == 2 && r.Redrives == 1 }},
	}
}

func (c *cutting) settle(s *postgres.Store, d *nixie.Delivery, verb nixie.Verb) error {
	st := nixie.Settlement{Delivery: d, Verb: verb}
	if verb != nixie.Complete {
		st.Failure = &nixie.Failure{FailedAt: c.clock.Now(), Text: "no"}
	}
	if verb == nixie.Bury {
		st.Burial = &nixie.Burial{Cause: nixie.CauseExhausted, Status: nixie.StatusOpen, Redrivable: true}
	}
	return s.Settle(c.Context(), []nixie.Settlement{st})[0]
}

// prepare makes the message of a call.
func (c *cutting) prepare(x *exchange) *cut {
	c.count++
	m := &cut{queue: x.name, key: fmt.Sprint(c.count)}
	if x.ready == nil {
		return m
	}
	_, err := c.truth.Enqueue(c.Context(), nixie.Message{Queue: m.queue, Key: m.key})
	must(c.T, err)
	for _, verb := range x.ready {
		if verb == claimed {
			ds, err := c.truth.Claim(c.Context(), m.queue, nixie.Want{Max: 1, Lease: time.Hour})
			must(c.T, err)
			m.d = ds[0]
			continue
		}
		must(c.T, c.settle(c.truth, m.d, verb))
		letters, _, err := c.truth.Letters(c.Context(), nixie.Filter{Keys: []string{m.key}}, store.Page{})
		must(c.T, err)
		m.letter = letters[0].ID
	}
	return m
}

// there reports whether the message was taken in.
func (c *cutting) there(m *cut) bool {
	c.Helper()
	records, _, err := c.truth.Messages(c.Context(), nixie.Filter{Keys: []string{m.key}}, store.Page{})
	must(c.T, err)
	return len(records) > 0
}

// done reports whether the call has changed the message.
func (c *cutting) done(x *exchange, m *cut) bool {
	c.Helper()
	records, _, err := c.truth.Messages(c.Context(), nixie.Filter{Keys: []string{m.key}}, store.Page{Whole: true})
	must(c.T, err)
	if len(records) > 1 {
		c.Fatalf("%s: there are %d of message %s", x.name, len(records), m.key)
	}
	return len(records) == 1 && x.after(&records[0])
}

// at makes one call that is cut at a byte, says whether the answer was true, and
// makes it again: in the end it is done, once.
func (c *cutting) at(x *exchange, cut int, back bool) nixie.Code {
	c.Helper()
	m := c.prepare(x)
	c.plan(cut, back)
	told := x.call(c, m)
	c.plan(-1, back)
	code, done := nixie.CodeOf(told), c.done(x, m)
	switch {
	case code == nixie.CodeOutcomeUnknown, code == "" && done, code == nixie.CodeUnavailable && !done:
	default:
		c.Errorf("%s, cut at byte %d, answers %v: told %v (%q), done %v", x.name, cut, back, told, code, done)
	}
	again := nixie.CodeOf(x.call(c, m))
	for tries := 1; c.mute && again == nixie.CodeOutcomeUnknown && tries < 20; tries++ {
		again = nixie.CodeOf(x.call(c, m)) // a busy machine may answer after the short time of a mute one
	}
	switch again {
	case "", nixie.CodeLeaseLost, nixie.CodeConflict:
	default:
		c.Errorf("%s, cut at byte %d, answers %v: told %v, and %q when it was done again", x.name, cut, back, told, again)
	}
	if !c.done(x, m) {
		c.Errorf("%s, cut at byte %d, answers %v: told %v, and in the end it was not done", x.name, cut, back, told)
	}
	c.drop(m)
	return code
}

// drop takes the message out of the way.
func (c *cutting) drop(m *cut) {
	c.Helper()
	records, _, err := c.truth.Messages(c.Context(), nixie.Filter{Keys: []string{m.key}, States: []nixie.State{nixie.Queued, nixie.Leased}},
		store.Page{})
	must(c.T, err)
	for i := range records {
		must(c.T, c.truth.Amend(c.Context(), []nixie.ID{records[i].ID}, store.Change{Verb: store.Cancel, Actor: "ann", Reason: "over"})[0])
	}
}

// length counts the bytes of a call in one direction, on a connection that
// knows its statements. The first call of a queue may have other ones.
func (c *cutting) length(x *exchange, back bool) int {
	c.Helper()
	for range 3 {
		m := c.prepare(x)
		c.plan(-1, back)
		must(c.T, x.call(c, m))
		if !c.done(x, m) {
			c.Fatalf("%s is not done when nothing is cut", x.name)
		}
		c.drop(m)
	}
	return c.passed()
}

// TestConnectionCutAnywhere cuts the connection of calls at one byte after the
// other, of what is asked and of what is answered; a deep run at each byte. What
// the call says is true: done, not done, or unknown, and then it is done again,
// with one effect. A quick run has half of the bytes of a long one.
func TestConnectionCutAnywhere(t *testing.T) {
	c := newCutting(t, 0)
	list, stride := exchanges(), 128
	if proof.Current() < proof.Long {
		stride = 256
	}
	answers := map[nixie.Code]int{}
	proof.Run(t, "cuts-postgres", func(_ *testing.T, seed uint64) int {
		n := int(seed - 1)
		x, back := &list[n%len(list)], n/len(list)%2 == 1
		first := n / (2 * len(list)) % stride
		cuts := 0
		for at := first; at < c.length(x, back); at += stride {
			answers[c.at(x, at, back)]++
			cuts++
		}
		return cuts
	})
	t.Logf("answers: %v", answers)
	if !proof.IsDeep() && (answers[nixie.CodeOutcomeUnknown] == 0 || answers[nixie.CodeUnavailable] == 0) {
		t.Errorf("the cuts were not everywhere: %v", answers)
	}
	sound(t, c.truth)
}

// TestB053_ConnectionThatIsMute lets a connection die without a word in the middle
// of calls: nothing comes back and nothing says so. Each call ends by its own
// time, and what it was about is done once in the end. Of a claim whose answer never
// comes, nothing is lost when its lease ends.
func TestB053_ConnectionThatIsMute(t *testing.T) {
	const answerWait = 500 * time.Millisecond
	c := newCutting(t, answerWait)
	c.mute = true
	answers := map[nixie.Code]int{}
	for _, x := range exchanges() {
		back := slices.Contains([]string{"claim", "complete", "exchange", "redrive"}, x.name)
		answers[c.at(&x, c.length(&x, back)/2, back)]++
	}
	t.Logf("answers: %v", answers)
	if answers[""] > 0 || answers[nixie.CodeOutcomeUnknown] == 0 {
		t.Errorf("the connections were not mute: %v", answers)
	}
	sound(t, c.truth)
}
