package storetest

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Model applies random operations to a store and to the reference store at the same virtual time.
// After each it compares everything that can be seen: answers of calls, order of claims, counters,
// lease numbers, letters and overviews. At the end it compares the audit and checks the invariants.
// Messages are compared by the order in which they were made, because their IDs differ.
//
// It runs two parts, without and with faults, of 100 checks with 60 steps on average. The flags
// -rapid.checks and -rapid.steps (half of the steps) change that.
func Model(t *testing.T, h Harness) {
	t.Run("NoFaults", func(t *testing.T) { model(t, h, false, 1) })
	t.Run("Faults", func(t *testing.T) { model(t, h, true, 1) })
}

// ModelWithoutFaults runs the part of [Model] in which time stands still, from a seed: ten checks
// of 60 steps on average, or of 150 in a deep run. A deep run compares what readers see after every
// fourth step only, so that most of the time goes into the store. Answers of calls are always
// compared. It returns the number of checks.
func ModelWithoutFaults(t *testing.T, h Harness, seed uint64, deep bool) int {
	return seededModel(t, h, false, seed, deep)
}

// ModelWithFaults runs the part of [Model] in which time passes and processes come, go and crash,
// as [ModelWithoutFaults] does.
func ModelWithFaults(t *testing.T, h Harness, seed uint64, deep bool) int {
	return seededModel(t, h, true, seed, deep)
}

func seededModel(t *testing.T, h Harness, faults bool, seed uint64, deep bool) int {
	const checks = 10
	steps, every := 30, 1 // of each half of a check
	if deep {
		steps, every = 75, 4
	}
	// The library counts up from the seed, so seeds differ in their high bits.
	setFlag(t, "rapid.seed", strconv.FormatUint(seed<<32, 10))
	setFlag(t, "rapid.checks", strconv.Itoa(checks))
	setFlag(t, "rapid.steps", strconv.Itoa(steps))
	model(t, h, faults, every)
	return checks
}

// setFlag sets a flag of the tests until the end of the test.
func setFlag(t *testing.T, name, value string) {
	t.Helper()
	before := flag.Lookup(name).Value.String()
	if err := flag.Set(name, value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := flag.Set(name, before); err != nil {
			t.Error(err)
		}
	})
}

// model runs one part. It compares what readers see after every n-th step.
func model(t *testing.T, h Harness, faults bool, every int) {
	rapid.Check(t, func(r *rapid.T) {
		clock := NewClock()
		m := &machine{
			T: r, ctx: context.Background(), clock: clock, sut: h.Open(t, clock), ref: Memory(t, clock),
			names: [2]map[nixie.ID]int{{}, {}}, beginTx: h.Begin, every: every,
		}
		defer m.sut.Close()
		defer m.ref.Close()
		m.processes = []*process{m.join(), m.join()}
		m.begin()
		actions := map[string]func(*rapid.T){
			"enqueue": m.enqueue, "enqueue2": m.enqueue, "claim": m.claim, "settle": m.settle, "settle2": m.settle,
			"settleMany": m.settleMany, "exchange": m.exchange, "extend": m.extend, "amend": m.amend,
			"die": m.die, "resolve": m.resolve, "resolve2": m.resolve, "plan": m.plan, "pause": m.pause, "reorder": m.reorder,
			"unblock": m.unblock, "query": m.query, "adopt": m.adopt, "purge": m.purge, "adjust": m.adjust, "tally": m.retrying,
			"regroup": m.regroup, "document": m.document,
			"search": m.search, "repeat": m.repeat, "": m.compareNow,
		}
		if h.Begin != nil {
			actions["transact"] = m.transact
		}
		if faults {
			actions["advance"], actions["crash"], actions["close"], actions["claim2"] = m.advance, m.crash, m.leave, m.claim
			actions["prune"], actions["record"] = m.prune, m.record
		}
		r.Repeat(actions)
		r.Repeat(actions)
		m.finish()
	})
}

// process is one process with a handle on each store.
type process struct {
	sut, ref store.Store
	owner    string
}

// pair is the same delivery of both stores, also after it was settled.
type pair struct {
	sut, ref *nixie.Delivery
	by       *process
}

// machine is one run of the model.
type machine struct {
	*rapid.T
	ctx       context.Context
	clock     *Clock
	sut, ref  Shared
	beginTx   func(context.Context, store.Store) (OpenTx, error)
	processes []*process // alive
	vanished  []*process // dead, with leases that may still look current
	joined    int
	scope     nixie.DedupeScope
	order     map[string]nixie.QueueSettings // by queue
	pairs     []pair                         // the newest, at most maxPairs
	received  int                            // number of all
	names     [2]map[nixie.ID]int            // numbers of messages in sut and ref, in the order in which they were made
	ids       [][2]nixie.ID                  // by number
	plans     []plan
	revisions map[string][2]int64 // of documents, by key

	every, steps int // what readers see is compared after every n-th step
}

var modelQueues = []string{"a", "b"}

func (m *machine) join() *process {
	m.joined++
	owner := fmt.Sprintf("owner-%d", m.joined)
	return &process{sut: m.sut.Join(owner), ref: m.ref.Join(owner), owner: owner}
}

// begin configures the queues.
func (m *machine) begin() {
	m.scope = rapid.SampledFrom([]nixie.DedupeScope{"", nixie.DedupeQueued, nixie.DedupeActive, nixie.DedupeUnresolved,
		nixie.DedupeEver}).Draw(m.T, "scope")
	m.order = map[string]nixie.QueueSettings{}
	for _, q := range modelQueues {
		m.order[q] = m.ordering(m.T)
		if other := modelQueues[len(modelQueues)-1]; q != other && rapid.Bool().Draw(m.T, "notices") {
			set := m.order[q]
			set.DeadLetterTo = other
			m.order[q] = set
		}
		m.configure(q, false)
	}
}

// ordering draws the order of a queue.
func (m *machine) ordering(r *rapid.T) nixie.QueueSettings {
	return rapid.SampledFrom([]nixie.QueueSettings{
		{}, {PriorityAge: -1}, {Order: nixie.OrderStrict}, {Order: nixie.OrderStrict},
		{Order: nixie.OrderRelaxed, PriorityAge: 5 * time.Second},
		{Order: nixie.OrderStrict, DeadHead: nixie.DeadFrees, PriorityAge: time.Second},
	}).Draw(r, "order")
}

func (m *machine) configure(queue string, paused bool) {
	p := m.processes[0]
	s := keeping(m.order[queue])
	s.DedupeScope, s.Lease, s.Paused = m.scope, 20*time.Second, paused
	m.sameCode("configure", store.Configure(m.ctx, p.sut, queue, s, "ann", "r"), store.Configure(m.ctx, p.ref, queue, s, "ann", "r"))
}

func (m *machine) process(r *rapid.T) *process {
	return rapid.SampledFrom(m.processes).Draw(r, "process")
}
func (m *machine) queue(r *rapid.T) string { return rapid.SampledFrom(modelQueues).Draw(r, "queue") }

// sameCode expects two errors of the same code. An unknown message has no lease, so not-found and
// lease-lost are the same for a delivery.
func (m *machine) sameCode(what string, sut, ref error) {
	m.Helper()
	if nixie.CodeOf(sut) != nixie.CodeOf(ref) {
		m.Fatalf("%s: error is %v (code %q), of the reference %v (code %q)", what, sut, nixie.CodeOf(sut), ref, nixie.CodeOf(ref))
	}
}

func (m *machine) sameCodes(what string, sut, ref []error) {
	m.Helper()
	if len(sut) != len(ref) {
		m.Fatalf("%s: %d answers, of the reference %d", what, len(sut), len(ref))
	}
	for i := range sut {
		m.sameCode(fmt.Sprintf("%s, part %d", what, i), sut[i], ref[i])
	}
}

func (m *machine) same(what string, sut, ref any) {
	m.Helper()
	if x, y := fmt.Sprintf("%+v", sut), fmt.Sprintf("%+v", ref); x != y {
		m.Fatalf("%s differs\nstore:     %s\nreference: %s", what, x, y)
	}
}

// name returns the number of a message of one of the stores, −1 for none.
func (m *machine) name(side int, id nixie.ID) int {
	if n, ok := m.names[side][id]; ok {
		return n
	}
	return -1
}

// others lists the other queues with leases that are over. A claim may end the leases of one queue
// or of all. The machine claims from all of them at once, so that both stores see the abandoned
// messages at the same time.
func (m *machine) others(queue string) []string {
	now := m.clock.Now()
	records, err := allMessages(m.ctx, m.processes[0].ref, nixie.Filter{States: []nixie.State{nixie.Leased}})
	if err != nil {
		m.Fatal(err)
	}
	var others []string
	for _, r := range records {
		if r.Queue != queue && !slices.Contains(others, r.Queue) && m.void(&r, now) {
			others = append(others, r.Queue)
		}
	}
	slices.Sort(others)
	return others
}

// void reports whether the next claim ends the lease of a message that the reference shows as
// leased.
func (m *machine) void(r *store.Record, now time.Time) bool {
	return r.State == nixie.Leased && (!now.Before(r.LeaseExpiresAt) ||
		slices.ContainsFunc(m.vanished, func(p *process) bool { return p.owner == r.LeaseOwner }))
}

// compareNow compares after every n-th step.
func (m *machine) compareNow(*rapid.T) {
	if m.steps++; m.steps%m.every == 0 {
		m.compare()
	}
}

// compare compares everything that a reader sees.
func (m *machine) compare() {
	now := m.clock.Now()
	p := m.processes[0]
	sut, err := allMessages(m.ctx, p.sut, nixie.Filter{})
	if err != nil {
		m.Fatal(err)
	}
	ref, err := allMessages(m.ctx, p.ref, nixie.Filter{})
	if err != nil {
		m.Fatal(err)
	}
	m.same("number of messages", len(sut), len(ref))
	seen := make(map[int]*store.Record, len(sut))
	for i := range sut {
		seen[m.name(0, sut[i].ID)] = &sut[i]
	}
	skip := map[string]bool{}
	for i := range ref {
		name := m.name(1, ref[i].ID)
		if m.void(&ref[i], now) {
			skip[ref[i].Queue] = true
			continue
		}
		if seen[name] == nil {
			m.Fatalf("message %d is missing", name)
		}
		m.same(fmt.Sprintf("message %d", name), m.seeMessage(0, seen[name]), m.seeMessage(1, &ref[i]))
	}
	m.compareLetters(p)
	if len(skip) == 0 {
		m.compareOperations(p)
	}
	m.compareQueues(p, skip)
	m.compareStreams(p, skip)
}

// seeMessage prints the fields of a message that can be compared.
func (m *machine) seeMessage(side int, r *store.Record) string {
	texts := make([]string, 0, len(r.History))
	for _, f := range r.History {
		texts = append(texts, seeFailure(&f))
	}
	notBefore := r.NotBefore
	if r.State != nixie.Queued || !notBefore.After(m.clock.Now()) {
		notBefore = time.Time{}
	}
	return fmt.Sprint(m.name(side, r.ID), r.Queue, r.Stream, r.MayPass, r.OrderGap, r.DedupeKey, m.seeBody(side, r.Body),
		" says ", r.Type, r.Key, r.Headers, r.Priority, r.State, " attempts ", r.Attempts, r.Deliveries, r.Crashes,
		" generations ", r.Generation, r.Redrives, r.Steps, " patience ", r.Patience,
		" last ", r.LastFailure, texts, r.HistoryDropped, " lease ", r.LeaseOwner,
		at(r.LeaseExpiresAt),
		" times ", at(notBefore), at(r.EnqueuedAt), at(r.RedrivenAt), at(r.ExpiresAt), at(r.FirstReceivedAt), at(r.EndedAt))
}

func seeFailure(f *nixie.Failure) string {
	return fmt.Sprint("\n  generation ", f.Generation, " attempt ", f.Attempt, f.Decision, f.Class, f.Reason, f.Text, f.Steps,
		at(f.StartedAt),
		at(f.FailedAt))
}

func at(t time.Time) string {
	if t.IsZero() {
		return " -"
	}
	return " " + t.UTC().Format("15:04:05.000")
}

func (m *machine) compareLetters(p *process) {
	sut, err := allLetters(m.ctx, p.sut, nixie.Filter{})
	if err != nil {
		m.Fatal(err)
	}
	ref, err := allLetters(m.ctx, p.ref, nixie.Filter{})
	if err != nil {
		m.Fatal(err)
	}
	m.same("letters", m.seeLetters(0, sut), m.seeLetters(1, ref))
}

// seeLetters prints the fields of letters that can be compared, by death. Letters of one moment
// have no order.
func (m *machine) seeLetters(side int, ls []nixie.Letter) []string {
	var seen []string
	for i := range ls {
		l := &ls[i]
		if i > 0 && ls[i-1].DiedAt.Before(l.DiedAt) {
			m.Fatalf("letters are not in the order of their deaths")
		}
		seen = append(seen, fmt.Sprint("\nletter of ", m.name(side, l.Message.ID), l.Status, l.Cause, l.Class, l.Reason, l.Signature,
			l.Fingerprint, l.Redrivable, l.NeedsReview, l.Rule,
			len(l.History), l.HistoryDropped, at(l.FirstFailedAt), at(l.LastFailedAt), at(l.DiedAt), at(l.ResolvedAt),
			l.Operation.IsZero(), " revision ", l.Revision, l.Note, seeNotes(l.Notes), l.Message.Headers))
		if l.Message.Type != nixie.TypeDeadLetter { // a notice names the ID of a message, which differs
			seen = append(seen, fmt.Sprint(seen[len(seen)-1], l.Message.Hash, seeOriginal(l.Original)))
		}
	}
	slices.Sort(seen)
	return seen
}

func (m *machine) compareQueues(p *process, skip map[string]bool) {
	sut, err := p.sut.Queues(m.ctx, store.QueueQuery{})
	if err != nil {
		m.Fatal(err)
	}
	ref, err := p.ref.Queues(m.ctx, store.QueueQuery{})
	if err != nil {
		m.Fatal(err)
	}
	m.same("number of queues", len(sut), len(ref))
	for i := range ref {
		x, y := sut[i], ref[i]
		if skip[y.Name] {
			continue
		}
		x.OldestAt, y.OldestAt, x.NextAt, y.NextAt = x.OldestAt.UTC(), y.OldestAt.UTC(), x.NextAt.UTC(), y.NextAt.UTC()
		x.BlockedAt, y.BlockedAt = x.BlockedAt.UTC(), y.BlockedAt.UTC()
		x.AskedAt = y.AskedAt // a claim that failed may have noted it
		x.Settings.PausedNote, y.Settings.PausedNote = m.seeNote(0, x.Settings), m.seeNote(1, y.Settings)
		m.same("overview", x, y)
	}
}

// seeNote prints the reason of a pause, with the number of the message that halted the queue.
func (m *machine) seeNote(side int, s nixie.QueueSettings) string {
	text, halted := strings.CutPrefix(s.PausedNote, "halted by message ")
	if !halted {
		return text
	}
	id, err := nixie.ParseID(text)
	if err != nil {
		m.Fatal(err)
	}
	return fmt.Sprint("halted by ", m.name(side, id))
}

// finish compares the audit and checks the invariants of both.
func (m *machine) finish() {
	m.compare()
	p := m.processes[0]
	for _, queue := range modelQueues {
		m.same("audit of "+queue, m.seeAudit(0, p.sut, queue), m.seeAudit(1, p.ref, queue))
	}
	for _, st := range []store.Store{p.ref, p.sut} {
		broken, err := Broken(m.ctx, st)
		if err != nil {
			m.Fatal(err)
		}
		for _, b := range broken {
			m.Error(b)
		}
	}
	for _, p := range m.processes {
		m.sameCode("close", p.sut.Close(), p.ref.Close())
	}
}

// seeAudit prints the entries of an audit that can be compared.
func (m *machine) seeAudit(side int, st store.Store, queue string) []string {
	entries, err := allEntries(m.ctx, st, queue)
	if err != nil {
		m.Fatal(err)
	}
	return m.seeEntries(side, st, entries)
}

func (m *machine) seeEntries(side int, st store.Store, entries []store.AuditEntry) []string {
	letters, err := allLetters(m.ctx, st, nixie.Filter{})
	if err != nil {
		m.Fatal(err)
	}
	of := map[nixie.ID]int{}
	for i := range letters {
		of[letters[i].ID] = m.name(side, letters[i].Message.ID)
	}
	var seen []string
	for _, e := range entries {
		subject, ok := of[e.Subject]
		if !ok {
			subject = m.name(side, e.Subject)
		}
		seen = append(seen, fmt.Sprint("\n", subject, " ", e.Event, " by ", e.Actor, ": ", e.Reason, at(e.At)))
	}
	return seen
}
