package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// fixture has a fresh store with one process, and the calls that clauses share.
type fixture struct {
	testing.TB
	ctx    context.Context
	clock  *Clock
	shared Shared
	st     store.Store // the first process
	joined int
}

// work is the queue of most clauses.
const work = "work"

func newFixture(t testing.TB, h Harness) *fixture {
	clock := NewClock()
	b := &fixture{TB: t, ctx: t.Context(), clock: clock, shared: h.Open(t, clock)}
	t.Cleanup(b.shared.Close)
	b.st = b.join()
	return b
}

// join opens the store as another process.
func (b *fixture) join() store.Store {
	b.joined++
	return b.shared.Join(fmt.Sprintf("owner-%d", b.joined))
}

// ok ends the test at an error.
func (b *fixture) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// code expects an error of one of the codes.
func (b *fixture) code(err error, want ...nixie.Code) {
	b.Helper()
	if !slices.Contains(want, nixie.CodeOf(err)) {
		b.Fatalf("error is %v (code %q), want code %q", err, nixie.CodeOf(err), want)
	}
}

// same expects two values to be equal.
func same[T comparable](b *fixture, what string, got, want T) {
	b.Helper()
	if got != want {
		b.Fatalf("%s is %v, want %v", what, got, want)
	}
}

// keys expects exactly the deliveries of these keys, in this order.
func (b *fixture) keys(ds []*nixie.Delivery, want ...string) {
	b.Helper()
	if got := keysOf(ds); !slices.Equal(got, want) {
		b.Fatalf("claimed %q, want %q", got, want)
	}
}

func keysOf(ds []*nixie.Delivery) []string {
	got := make([]string, 0, len(ds))
	for _, d := range ds {
		got = append(got, d.Key)
	}
	return got
}

// put enqueues one message with that key and options.
func (b *fixture) put(key string, opts ...nixie.Option) nixie.ID {
	b.Helper()
	m := message(key, opts...)
	receipts, err := b.st.Enqueue(b.ctx, m)
	b.ok(err)
	if len(receipts) != 1 || receipts[0].ID.IsZero() || receipts[0].Duplicate {
		b.Fatalf("receipts of one new message: %+v", receipts)
	}
	return receipts[0].ID
}

func message(key string, opts ...nixie.Option) nixie.Message {
	m := nixie.Message{Queue: work, Type: "test", Key: key, Body: []byte("body of " + key)}
	for _, set := range opts {
		set(&m)
	}
	return m
}

// claim takes up to n messages of the queue work for 30 s.
func (b *fixture) claim(n int) []*nixie.Delivery {
	b.Helper()
	return b.claimBy(b.st, n)
}

func (b *fixture) claimBy(st store.Store, n int) []*nixie.Delivery {
	b.Helper()
	ds, err := st.Claim(b.ctx, work, nixie.Want{Max: n, Lease: 30 * time.Second})
	b.ok(err)
	return ds
}

// take claims one message and checks its key.
func (b *fixture) take(key string) *nixie.Delivery {
	b.Helper()
	ds := b.claim(1)
	b.keys(ds, key)
	return ds[0]
}

// took enqueues and claims one message.
func (b *fixture) took(key string, opts ...nixie.Option) *nixie.Delivery {
	b.Helper()
	b.put(key, opts...)
	return b.take(key)
}

// settle applies one settlement and returns its answer.
func (b *fixture) settle(s nixie.Settlement) error {
	b.Helper()
	return b.settleBy(b.st, s)
}

func (b *fixture) settleBy(st store.Store, s nixie.Settlement) error {
	b.Helper()
	errs := st.Settle(b.ctx, []nixie.Settlement{s})
	same(b, "number of answers", len(errs), 1)
	return errs[0]
}

// failure makes the report of a worker about a delivery now.
func (b *fixture) failure(d *nixie.Delivery, text string) *nixie.Failure {
	return &nixie.Failure{
		Generation: d.Generation, Attempt: d.Attempts, StartedAt: b.clock.Now(), FailedAt: b.clock.Now(),
		Class: nixie.ClassUnknown, Reason: nixie.ReasonHandler, Type: "storetest.Error", Text: text,
	}
}

// burial returns an ordinary burial.
func burial(status nixie.Status) *nixie.Burial {
	return &nixie.Burial{
		Cause: nixie.CauseExhausted, Status: status, Signature: "handler: it fails", Fingerprint: "v1:aa",
		Redrivable: true, NeedsReview: status == nixie.StatusReview, Rule: "attempts",
	}
}

// dying returns a settlement that buries a delivery.
func (b *fixture) dying(d *nixie.Delivery, status nixie.Status) nixie.Settlement {
	f := b.failure(d, "it fails")
	f.Decision = nixie.Bury
	return nixie.Settlement{Delivery: d, Verb: nixie.Bury, Failure: f, Burial: burial(status)}
}

// dead makes a letter: it enqueues, claims and buries a message.
func (b *fixture) dead(key string, status nixie.Status, opts ...nixie.Option) nixie.Letter {
	b.Helper()
	d := b.took(key, opts...)
	b.ok(b.settle(b.dying(d, status)))
	return b.letterOf(d.ID)
}

// quarantined makes a letter in quarantine, which takes two deaths.
func (b *fixture) quarantined(key string, opts ...nixie.Option) nixie.Letter {
	b.Helper()
	l := b.dead(key, nixie.StatusOpen, opts...)
	b.ok(b.resolve(l.ID, store.OnRedrive))
	b.ok(b.settle(b.dying(b.take(key), nixie.StatusQuarantined)))
	return b.letter(l.ID)
}

// resolve applies an event to a letter as an operator.
func (b *fixture) resolve(letter nixie.ID, on store.Event) error {
	b.Helper()
	return b.resolution(store.Resolution{Letter: letter, Event: on, Actor: "ann", Reason: "because", Force: true})
}

func (b *fixture) resolution(r store.Resolution) error {
	b.Helper()
	errs := b.st.Resolve(b.ctx, []store.Resolution{r})
	same(b, "number of answers", len(errs), 1)
	return errs[0]
}

// amend applies a change that needs nothing but its verb.
func (b *fixture) amend(id nixie.ID, verb store.ChangeVerb) error {
	b.Helper()
	return b.change(id, change(verb))
}

func change(verb store.ChangeVerb) store.Change {
	return store.Change{Verb: verb, Actor: "ann", Reason: "because"}
}

// holding returns the change that holds a queued message.
func (b *fixture) holding(reason string) store.Change {
	c := change(store.Hold)
	c.Reason, c.Burial = reason, burial(nixie.StatusReview)
	c.Hold = &nixie.Failure{FailedAt: b.clock.Now(), Decision: nixie.Hold, Class: nixie.ClassPermanent, Reason: nixie.ReasonPoison,
		Text: "held"}
	return c
}

// change applies one change and returns its answer.
func (b *fixture) change(id nixie.ID, change store.Change) error {
	b.Helper()
	errs := b.st.Amend(b.ctx, []nixie.ID{id}, change)
	same(b, "number of answers", len(errs), 1)
	return errs[0]
}

// configure sets the settings of the queue work.
func (b *fixture) configure(s nixie.QueueSettings) {
	b.Helper()
	b.ok(store.Configure(b.ctx, b.st, work, s, "ann", "test"))
}

// letter reads one letter whole, by its own ID or that of its message.
func (b *fixture) letter(id nixie.ID) nixie.Letter {
	b.Helper()
	ls := b.letters(nixie.Filter{IDs: []nixie.ID{id}})
	if len(ls) != 1 {
		b.Fatalf("%d letters have the ID %s, want 1", len(ls), id)
	}
	return ls[0]
}

// letterOf reads the letter of a message.
func (b *fixture) letterOf(message nixie.ID) nixie.Letter {
	b.Helper()
	return b.letter(message)
}

// letters reads all letters that match, whole.
func (b *fixture) letters(f nixie.Filter) []nixie.Letter {
	b.Helper()
	all, err := allLetters(b.ctx, b.st, f)
	b.ok(err)
	return all
}

func allLetters(ctx context.Context, st store.Store, f nixie.Filter) ([]nixie.Letter, error) {
	return pages(func(p store.Page) ([]nixie.Letter, string, error) {
		p.Whole = true
		return st.Letters(ctx, f, p)
	})
}

// record reads one message whole.
func (b *fixture) record(id nixie.ID) store.Record {
	b.Helper()
	rs, _, err := b.st.Messages(b.ctx, nixie.Filter{IDs: []nixie.ID{id}}, store.Page{Whole: true})
	b.ok(err)
	if len(rs) != 1 {
		b.Fatalf("%d messages have the ID %s, want 1", len(rs), id)
	}
	return rs[0]
}

func allMessages(ctx context.Context, st store.Store, f nixie.Filter) ([]store.Record, error) {
	return pages(func(p store.Page) ([]store.Record, string, error) {
		p.Whole = true
		return st.Messages(ctx, f, p)
	})
}

func allEntries(ctx context.Context, st store.Store, queue string) ([]store.AuditEntry, error) {
	return pages(func(p store.Page) ([]store.AuditEntry, string, error) {
		return st.Audit(ctx, store.AuditFilter{Chain: queue}, p)
	})
}

// pages reads a listing to its end.
func pages[T any](list func(store.Page) ([]T, string, error)) ([]T, error) {
	var all []T
	for page := (store.Page{Limit: 500}); ; {
		part, next, err := list(page)
		all = append(all, part...)
		if err != nil || next == "" {
			return all, err
		}
		if len(part) == 0 {
			return all, fmt.Errorf("an empty page has the next cursor %q", next)
		}
		page.Cursor = next
	}
}

// state expects a message in this state.
func (b *fixture) state(id nixie.ID, want nixie.State) {
	b.Helper()
	same(b, "state of "+b.record(id).Key, b.record(id).State, want)
}

// status expects a letter in this status.
func (b *fixture) status(id nixie.ID, want nixie.Status) {
	b.Helper()
	same(b, "status of the letter", b.letter(id).Status, want)
}

// info returns the overview of the queue work.
func (b *fixture) info() store.QueueInfo {
	b.Helper()
	all, err := b.st.Queues(b.ctx, store.QueueQuery{})
	b.ok(err)
	for _, q := range all {
		if q.Name == work {
			return q
		}
	}
	return store.QueueInfo{}
}

// sound expects every invariant to hold, unless the clause closed the store.
func (b *fixture) sound() {
	b.Helper()
	if b.Failed() {
		return
	}
	st := b.join()
	Invariants(b, st)
	b.ok(st.Close())
}

// snapshot prints everything that a reader sees of a store, to show that a refused call changed
// nothing.
func (b *fixture) snapshot() string {
	b.Helper()
	messages, err := allMessages(b.ctx, b.st, nixie.Filter{})
	b.ok(err)
	infos, err := b.st.Queues(b.ctx, store.QueueQuery{})
	b.ok(err)
	entries, err := allEntries(b.ctx, b.st, work)
	b.ok(err)
	letters := b.letters(nixie.Filter{})
	for i := range messages { // the hash replaces the body, which may be long
		messages[i].Hash, messages[i].Body = nixie.HashBody(messages[i].Body), nil
		unpoint(&messages[i].Message, messages[i].History)
	}
	for i := range letters {
		letters[i].Message.Hash, letters[i].Message.Body = nixie.HashBody(letters[i].Message.Body), nil
		letters[i].Note += seeOriginal(letters[i].Original)
		letters[i].Original = nil
		unpoint(&letters[i].Message, letters[i].History)
	}
	return fmt.Sprintf("%+v\n%+v\n%+v\n%+v", messages, letters, infos, entries)
}

// unpoint replaces pointers by their values, because a snapshot would show addresses.
func unpoint(m *nixie.Message, history []nixie.Failure) {
	if m.Origin != nil {
		m.Key += fmt.Sprintf(" from %+v", *m.Origin)
		m.Origin = nil
	}
	for i := range history {
		if f := &history[i]; f.ExitCode != nil {
			f.Text += fmt.Sprintf(" exit %d", *f.ExitCode)
			f.ExitCode = nil
		}
	}
}

// unchanged runs f and expects that nothing changed.
func (b *fixture) unchanged(f func()) {
	b.Helper()
	before := b.snapshot()
	f()
	if after := b.snapshot(); after != before {
		b.Fatalf("a refused call changed the store\nbefore: %s\nafter:  %s", before, after)
	}
}
