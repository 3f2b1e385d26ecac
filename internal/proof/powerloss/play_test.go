package powerloss_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof/faultdisk"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/store/storetest"
)

const (
	plainQueue   = "plain"
	orderedQueue = "ordered" // strict or relaxed
)

// play does random acts to a store on a disk that loses power. An act is one call,
// which may be refused: then it is to have changed nothing.
type play struct {
	t     *testing.T
	ctx   context.Context
	rng   *rand.Rand
	clock *storetest.Clock
	disk  *faultdisk.Disk
	s     *sqlite.Store
	held  []*nixie.Delivery // also settled ones
	plans []nixie.ID
	made  int // keys and rows
}

func (p *play) open() {
	s, err := sqlite.Open(p.disk.Path("store.db"), sqlite.Options{
		VFS: p.disk.VFS(), Reserve: -1, LockWait: time.Millisecond, Clock: p.clock.Now, Owner: "player",
	})
	must(p.t, err)
	p.s = s
}

// pass lets some time go by.
func (p *play) pass() {
	p.clock.Advance(oneOf(p.rng, 0, 0, time.Second, 20*time.Second, 2*time.Minute))
}

func oneOf[T any](rng *rand.Rand, all ...T) T { return all[rng.IntN(len(all))] }

// configure gives a queue its settings: retentions that are over within a run.
func (p *play) configure(queue string) string {
	set := nixie.QueueSettings{
		DedupeScope: oneOf(p.rng, nixie.DedupeActive, nixie.DedupeUnresolved, nixie.DedupeEver),
		Retention:   time.Minute, LetterRetention: time.Minute, AuditRetention: 2 * time.Minute,
	}
	if queue == orderedQueue {
		set.Order = oneOf(p.rng, nixie.OrderStrict, nixie.OrderStrict, nixie.OrderRelaxed)
	}
	must(p.t, store.Configure(p.ctx, p.s, queue, set, "ann", "set"))
	return "configure"
}

// act does one random thing and says what.
func (p *play) act() string {
	acts := []struct {
		name string
		do   func()
	}{
		{"enqueue", p.enqueue}, {"enqueue", p.enqueue}, {"claim", p.claim}, {"claim", p.claim}, {"settle", p.settle}, {"settle", p.settle},
		{"bury", p.bury}, {"extend", p.extend}, {"resolve", p.resolve}, {"redrive item", p.redrive}, {"plan", p.plan}, {"amend", p.amend},
		{"prune", p.prune}, {"purge", p.purge}, {"unblock", p.unblock}, {"adopt", p.adopt}, {"transaction", p.transact},
		{"checkpoint", p.checkpoint}, {"reopen", p.reopen},
	}
	a := acts[p.rng.IntN(len(acts))]
	a.do()
	return a.name
}

// allow passes over what a store may refuse; anything else ends the test.
func (p *play) allow(errs ...error) {
	p.t.Helper()
	for _, err := range errs {
		switch nixie.CodeOf(err) {
		case "", nixie.CodeConflict, nixie.CodeLeaseLost, nixie.CodeNotFound, nixie.CodeInvalid:
		default:
			p.t.Fatal(err)
		}
	}
}

func (p *play) message() nixie.Message {
	p.made++
	m := nixie.Message{
		Queue: oneOf(p.rng, plainQueue, orderedQueue), Key: fmt.Sprint("k", p.made), Type: "t",
		Body:      []byte(strings.Repeat(fmt.Sprint("body ", p.made, " "), p.rng.IntN(oneOf(p.rng, 2, 20, 900)))),
		Priority:  oneOf(p.rng, 0, 0, 0, 1, -1),
		Delay:     oneOf(p.rng, 0, 0, 0, 10*time.Second),
		DedupeKey: oneOf(p.rng, "", "", "x", "y"), OnConflict: oneOf(p.rng, nixie.ReturnExisting, nixie.FailOnConflict,
			nixie.ReplaceExisting),
	}
	if m.Queue == orderedQueue {
		m.Stream = oneOf(p.rng, "s", "t", "")
	}
	return m
}

func (p *play) enqueue() {
	ms := make([]nixie.Message, 1+p.rng.IntN(3))
	for i := range ms {
		ms[i] = p.message()
	}
	_, err := p.s.Enqueue(p.ctx, ms...)
	p.allow(err)
}

func (p *play) claim() {
	ds, err := p.s.Claim(p.ctx, oneOf(p.rng, plainQueue, orderedQueue), nixie.Want{Max: 1 + p.rng.IntN(4),
		Lease: oneOf(p.rng, 10*time.Second, time.Hour)})
	p.allow(err)
	p.held = append(p.held, ds...)
}

// some chooses up to two of the newest deliveries, which may be settled or lost.
func (p *play) some() []*nixie.Delivery {
	newest := p.held[max(0, len(p.held)-6):]
	at := p.rng.Perm(len(newest))
	var chosen []*nixie.Delivery
	for _, i := range at[:min(len(at), 1+p.rng.IntN(2))] {
		chosen = append(chosen, newest[i])
	}
	return chosen
}

func (p *play) settle() {
	p.end(nixie.Complete, nixie.Complete, nixie.Retry, nixie.Release, nixie.Discard, nixie.Hold, nixie.Halt)
}

func (p *play) bury() { p.end(nixie.Bury) }

func (p *play) end(verbs ...nixie.Verb) {
	var all []nixie.Settlement
	for _, d := range p.some() {
		st := nixie.Settlement{Delivery: d, Verb: oneOf(p.rng, verbs...), Delay: oneOf(p.rng, 0, 5*time.Second)}
		if st.Verb != nixie.Complete && st.Verb != nixie.Release {
			st.Failure = p.failure()
		}
		st.Burial = &nixie.Burial{Cause: nixie.CausePermanent, Status: oneOf(p.rng, nixie.StatusOpen, nixie.StatusQuarantined),
			Fingerprint: "v1:a", Redrivable: true}
		if st.Verb == nixie.Hold {
			st.Burial.Status = nixie.StatusReview
		}
		if st.Verb != nixie.Release && p.rng.IntN(3) == 0 {
			st.Then = []nixie.Message{{Queue: plainQueue, Body: []byte("next")}, {Queue: orderedQueue, Stream: "s", Body: []byte("last")}}
		}
		all = append(all, st)
	}
	p.allow(p.s.Settle(p.ctx, all)...)
}

func (p *play) failure() *nixie.Failure {
	f := &nixie.Failure{
		Class: nixie.ClassPermanent, Reason: nixie.ReasonHandler, Text: fmt.Sprint("no ", p.rng.IntN(3)), FailedAt: p.clock.Now(),
	}
	if p.rng.IntN(3) == 0 {
		f.Attachments = []nixie.Attachment{{Name: "stderr", Data: []byte(strings.Repeat("no\n", p.rng.IntN(3000)))}}
	}
	return f
}

func (p *play) extend() { p.allow(p.s.Extend(p.ctx, p.some(), time.Minute)...) }

// letters chooses up to two.
func (p *play) letters() []nixie.ID {
	all, _, err := p.s.Letters(p.ctx, nixie.Filter{}, store.Page{})
	must(p.t, err)
	var ids []nixie.ID
	for _, i := range p.rng.Perm(len(all))[:min(len(all), 2)] {
		ids = append(ids, all[i].ID)
	}
	return ids
}

func (p *play) resolve() {
	var all []store.Resolution
	for _, id := range p.letters() {
		all = append(all, store.Resolution{
			Letter: id, Actor: "ann", Reason: "why", Force: true, Event: oneOf(p.rng,
				store.OnRedrive, store.OnRedrive, store.OnDiscard, store.OnHold, store.OnUnhold, store.OnRequalify, store.OnRestore,
				store.OnNote, store.OnPurge),
		})
	}
	p.allow(p.s.Resolve(p.ctx, all)...)
}

func (p *play) plan() {
	op, err := p.s.Plan(p.ctx, store.Operation{Event: store.OnRedrive, Actor: "ann", Force: true}, nixie.Filter{}, 3)
	p.allow(err)
	p.plans = append(p.plans, op.ID)
}

// redrive moves what is next in the newest operation.
func (p *play) redrive() {
	if len(p.plans) == 0 {
		p.plan()
		return
	}
	id := p.plans[len(p.plans)-1]
	found, err := store.FindOperation(p.ctx, p.s, store.OperationQuery{ID: id, Next: 1})
	must(p.t, err)
	for _, letter := range found.Next {
		p.allow(p.s.Resolve(p.ctx, []store.Resolution{{Letter: letter, Event: store.OnRedrive, Actor: "ann", Operation: id,
			Force: true}})...)
	}
}

func (p *play) amend() {
	ms, _, err := p.s.Messages(p.ctx, nixie.Filter{States: []nixie.State{nixie.Queued, nixie.Leased}}, store.Page{})
	must(p.t, err)
	if len(ms) == 0 {
		return
	}
	c := store.Change{Verb: oneOf(p.rng, store.ChangeVerbs()...), Actor: "ann", Reason: "why", At: p.clock.Now().Add(time.Minute),
		Queue: plainQueue}
	c.Hold, c.Burial = p.failure(), &nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusReview, Fingerprint: "v1:a"}
	c.Hold.Decision = nixie.Hold
	p.allow(p.s.Amend(p.ctx, []nixie.ID{ms[p.rng.IntN(len(ms))].ID}, c)...)
}

func (p *play) prune() {
	_, err := p.s.Prune(p.ctx, store.Pruning{})
	p.allow(err)
}

func (p *play) purge() {
	_, err := p.s.Purge(p.ctx, oneOf(p.rng, plainQueue, orderedQueue), nixie.Filter{}, 1+p.rng.IntN(3), "ann", "why")
	p.allow(err)
}

func (p *play) unblock() {
	_, err := p.s.Features().Streams.Unblock(p.ctx, store.Unblocking{Queue: orderedQueue, Stream: oneOf(p.rng, "s", "t"), Actor: "ann",
		Reason: "why", Mark: p.rng.IntN(2) == 0})
	p.allow(err)
}

// adopt takes in a letter that died elsewhere.
func (p *play) adopt() {
	m := p.message()
	_, errs := p.s.Adopt(p.ctx, []nixie.Letter{{
		Message: nixie.Message{Queue: m.Queue, Key: m.Key, Body: m.Body, DedupeKey: m.DedupeKey},
		Cause:   nixie.CauseAdopted, Status: nixie.StatusOpen, DiedAt: p.clock.Now(),
	}}, "ann", "why")
	p.allow(errs...)
}

// transact encloses a row of the caller, a message, a key of the inbox and the end
// of a delivery.
func (p *play) transact() {
	db, err := p.s.DB()
	must(p.t, err)
	tx, err := db.BeginTx(p.ctx, nil)
	must(p.t, err)
	in := p.s.Tx(tx)
	p.made++
	for _, query := range []string{
		"create table if not exists app_row (key text primary key)", fmt.Sprintf("insert into app_row (key) values ('row %d')", p.made),
	} {
		_, err := tx.ExecContext(p.ctx, query)
		must(p.t, err)
	}
	_, err = in.Enqueue(p.ctx, p.message())
	p.allow(err)
	first, err := in.Once(p.ctx, "app", fmt.Sprint("row ", p.made))
	must(p.t, err)
	if !first {
		p.t.Fatalf("row %d is known before its time", p.made)
	}
	for _, d := range p.some()[:min(1, len(p.held))] {
		p.allow(in.Complete(p.ctx, d))
	}
	if p.rng.IntN(3) == 0 {
		must(p.t, tx.Rollback())
		return
	}
	must(p.t, tx.Commit())
}

func (p *play) checkpoint() {
	db, err := p.s.DB()
	must(p.t, err)
	_, err = db.ExecContext(p.ctx, "pragma wal_checkpoint(restart)")
	must(p.t, err)
}

// reopen leaves the store and comes back: leases are given back and the log goes
// into the file.
func (p *play) reopen() {
	must(p.t, p.s.Close())
	p.open()
}

// seen is everything that a store shows, a line for each thing.
func (p *play) seen(s *sqlite.Store) string {
	var lines strings.Builder
	show := func(what string, all any, err error) {
		if err != nil {
			fmt.Fprintf(&lines, "%s: %v\n", what, err)
			return
		}
		data, err := json.Marshal(all)
		fmt.Fprintf(&lines, "%s %s %v\n", what, data, err)
	}
	whole := store.Page{Whole: true, Limit: 10_000}
	messages, _, err := s.Messages(p.ctx, nixie.Filter{}, whole)
	for i := range messages {
		show("message", messages[i], err)
	}
	letters, _, err2 := s.Letters(p.ctx, nixie.Filter{}, whole)
	for i := range letters {
		show("letter", letters[i], err2)
	}
	show("errors", nil, firstOf(err, err2))
	queues, err := s.Queues(p.ctx, store.QueueQuery{})
	show("queues", queues, err)
	for _, q := range queues {
		entries, _, err := s.Audit(p.ctx, store.AuditFilter{Chain: q.Name}, whole)
		show("audit", entries, err)
		streams, _, err := s.Features().Streams.Streams(p.ctx, store.StreamQuery{Queue: q.Name}, whole)
		show("streams", streams, err)
	}
	for _, id := range p.plans {
		op, err := store.FindOperation(p.ctx, s, store.OperationQuery{ID: id, Next: 100})
		if nixie.CodeOf(err) == nixie.CodeNotFound {
			continue // it is planned by the act in which the power goes
		}
		show("operation", op, err)
		show("items", op.Next, err)
	}
	db, err := s.DB()
	must(p.t, err)
	keys, err := texts(db, "select key from inbox order by key")
	show("inbox", keys, err)
	if tables, err := texts(db, "select name from sqlite_schema where name = 'app_row'"); err != nil || len(tables) > 0 {
		keys, err := texts(db, "select key from app_row order by key")
		show("rows", keys, err)
	}
	return lines.String()
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// difference is the first line in which two views differ.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("want %.600s, got %.600s", w[i], g[i])
		}
	}
	return fmt.Sprintf("want %d lines, got %d", len(w), len(g))
}
