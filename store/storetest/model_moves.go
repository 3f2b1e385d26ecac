package storetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
)

// maxPairs limits the deliveries that are remembered, so that some are settled too late.
const maxPairs = 30

func (m *machine) enqueue(r *rapid.T) {
	p := m.process(r)
	m.enqueueTo(p.sut, p.ref, m.messages(r))
}

func (m *machine) messages(r *rapid.T) []nixie.Message {
	var ms []nixie.Message
	for i := range rapid.IntRange(1, 3).Draw(r, "messages") {
		ms = append(ms, nixie.Message{
			Queue: m.queue(r), Type: rapid.SampledFrom([]string{"t", "u", ""}).Draw(r, "type"),
			Body: []byte(fmt.Sprintf("body %d", rapid.IntRange(0, 2).Draw(r, "body"))),
			Key:  rapid.SampledFrom([]string{fmt.Sprintf("k%d.%d", len(m.ids), i), ""}).Draw(r, "name"),
			Headers: rapid.SampledFrom([][]nixie.Header{nil, nil, {{Name: "h", Value: "1"}},
				{{Name: "h", Value: "2"}, {Name: "h", Value: "1"}}}).Draw(r, "headers"),
			Priority:  rapid.SampledFrom([]int{0, 0, 0, 1, -1}).Draw(r, "priority"),
			Delay:     rapid.SampledFrom([]time.Duration{0, 0, time.Second, 10 * time.Second}).Draw(r, "delay"),
			Stream:    rapid.SampledFrom([]string{"", "", "s", "s", "t"}).Draw(r, "stream"),
			DedupeKey: rapid.SampledFrom([]string{"", "", "x", "y"}).Draw(r, "key"),
			OnConflict: rapid.SampledFrom([]nixie.Conflict{
				nixie.ReturnExisting, nixie.FailOnConflict, nixie.ReplaceExisting,
			}).Draw(r, "conflict"),
		})
	}
	return ms
}

func (m *machine) enqueueTo(sutTo, refTo nixie.Enqueuer, ms []nixie.Message) {
	m.Helper()
	sut, err := sutTo.Enqueue(m.ctx, ms...)
	ref, want := refTo.Enqueue(m.ctx, ms...)
	m.sameCode("enqueue", err, want)
	if err != nil {
		return
	}
	for i := range ref {
		if !ref[i].Duplicate && !sut[i].Duplicate {
			m.made(sut[i].ID, ref[i].ID)
		}
		m.same("receipt", seeReceipt(m.name(0, sut[i].ID), sut[i]), seeReceipt(m.name(1, ref[i].ID), ref[i]))
	}
}

// made numbers a message that is new in both stores.
func (m *machine) made(sut, ref nixie.ID) {
	m.names[0][sut], m.names[1][ref] = len(m.ids), len(m.ids)
	m.ids = append(m.ids, [2]nixie.ID{sut, ref})
}

func seeReceipt(name int, r nixie.Receipt) string { return fmt.Sprint(name, r.Duplicate, r.Different) }

func (m *machine) claim(r *rapid.T) {
	p, queue := m.process(r), m.queue(r)
	want := m.want(r, p)
	others := m.others(queue)
	m.claimFrom(p, queue, want)
	m.claimOthers(p, others)
}

// claimOthers claims from queues in which leases are over: some stores end all leases at a claim.
func (m *machine) claimOthers(p *process, queues []string) {
	for _, queue := range queues {
		m.claimFrom(p, queue, nixie.Want{Max: 1})
	}
	m.vanished = nil
}

// want draws what a claim asks for.
func (m *machine) want(r *rapid.T, p *process) nixie.Want {
	want := nixie.Want{
		Max:        rapid.SampledFrom([]int{1, 2, 3, 5, 10}).Draw(r, "max"),
		Lease:      rapid.SampledFrom([]time.Duration{0, 10 * time.Second, 30 * time.Second}).Draw(r, "lease"),
		NoSuspects: rapid.SampledFrom([]bool{false, false, true}).Draw(r, "fresh"),

		Parallel: rapid.SampledFrom([]int{0, 1, 2, 8}).Draw(r, "parallel"),
	}
	if _, ok := p.sut.(lease.ProgressLog); ok {
		want.LogProgress = rapid.Bool().Draw(r, "noted")
	}
	return want
}

func (m *machine) claimFrom(p *process, queue string, want nixie.Want) {
	sut, err := p.sut.Claim(m.ctx, queue, want)
	ref, expected := p.ref.Claim(m.ctx, queue, want)
	m.sameCode("claim", err, expected)
	m.took(p, fmt.Sprintf("claim of %+v from %s", want, queue), sut, ref)
}

// took compares what a claim got, and keeps it.
func (m *machine) took(p *process, what string, sut, ref []*nixie.Delivery) {
	m.same(what, m.seeDeliveries(0, sut), m.seeDeliveries(1, ref))
	for i := range ref {
		m.pairs = append(m.pairs, pair{sut[i], ref[i], p})
		m.received++
	}
	if over := len(m.pairs) - maxPairs; over > 0 {
		m.pairs = slices.Delete(m.pairs, 0, over)
	}
}

func (m *machine) seeDeliveries(side int, ds []*nixie.Delivery) []string {
	var seen []string
	for _, d := range ds {
		seen = append(seen, fmt.Sprint("\nmessage ", m.name(side, d.ID), d.LastFailure, d.LastReason, m.seeBody(side, d.Body),
			d.Hash == nixie.HashBody(d.Body), " attempts ", d.Attempts, d.Deliveries, d.Crashes,
			" generations ", d.Generation, d.Redrives, d.Steps, " patience ", d.Patience,
			" lease ", d.Lease.Number, d.Lease.Owner, at(d.Lease.ExpiresAt),
			d.Abandoned, d.AbandonedBy, d.AbandonedAlone, d.OrderGap, d.MayPass, at(d.FirstReceivedAt),
			" redriven ", at(d.RedrivenAt), d.Operation.IsZero(), at(d.FirstFailedAt)))
	}
	return seen
}

// some draws up to three pairs, also lost and settled ones and one twice. A store may or may not
// have seen yet that a holder is dead, so the leases of dead processes are left alone.
func (m *machine) some(r *rapid.T) []pair {
	usable := slices.DeleteFunc(slices.Clone(m.pairs), func(l pair) bool { return slices.Contains(m.vanished, l.by) })
	if len(usable) == 0 {
		r.Skip("nothing was claimed")
	}
	return rapid.SliceOfN(rapid.SampledFrom(usable), 1, 3).Draw(r, "pairs")
}

func (m *machine) settle(r *rapid.T) {
	p := m.process(r)
	var sut, ref []nixie.Settlement
	for _, l := range m.some(r) {
		x, y := m.settlement(r, l)
		sut, ref = append(sut, x), append(ref, y)
	}
	m.settleBoth(p, "settle", sut, ref)
}

// dropKeys leaves dedupe keys only to the messages of the last settlement: a store may take in
// earlier ones before or after a later settlement frees their key.
func dropKeys(sut []nixie.Settlement) {
	for i := range sut[:max(len(sut)-1, 0)] {
		for j := range sut[i].Then { // the reference has the same list
			sut[i].Then[j].DedupeKey = ""
		}
	}
}

// settleBoth settles in both stores, and numbers the messages that follow.
func (m *machine) settleBoth(p *process, what string, sut, ref []nixie.Settlement) {
	m.Helper()
	dropKeys(sut)
	m.sameCodes(what, p.sut.Settle(m.ctx, sut), p.ref.Settle(m.ctx, ref))
	m.followed()
}

// followed numbers the messages that followed settlements, and the notices of deaths. Of those that
// look the same, the first that a store took in is the first of the reference.
func (m *machine) followed() {
	m.Helper()
	sut, ref := m.unnamed(0, m.processes[0].sut), m.unnamed(1, m.processes[0].ref)
	for _, look := range slices.Sorted(maps.Keys(ref)) {
		if len(sut[look]) != len(ref[look]) {
			m.Fatalf("%d messages like this one follow settlements, of the reference %d: %s", len(sut[look]), len(ref[look]), look)
		}
		for i, id := range ref[look] {
			m.made(sut[look][i], id)
		}
		delete(sut, look)
	}
	for look := range sut {
		m.Fatalf("this message follows nothing in the reference: %s", look)
	}
}

// unnamed returns the messages of a store that have no number by what they look like, newest first.
func (m *machine) unnamed(side int, st store.Store) map[string][]nixie.ID {
	records, err := allMessages(m.ctx, st, nixie.Filter{})
	if err != nil {
		m.Fatal(err)
	}
	by := map[string][]nixie.ID{}
	for i := range records {
		r := &records[i]
		if _, named := m.names[side][r.ID]; !named {
			look := m.seeMessage(side, r)
			by[look] = append(by[look], r.ID)
		}
	}
	return by
}

// seeBody prints a body. That of a notice has the number of the message that died, which may have
// been a notice too.
func (m *machine) seeBody(side int, body []byte) string {
	seen, rest := "", string(body)
	for {
		before, id, notice := strings.Cut(rest, `"message_id":"`)
		if seen += before; !notice {
			return seen
		}
		id, rest, _ = strings.Cut(id, `"`)
		seen += fmt.Sprint("message ", m.nameOf(side, id))
	}
}

func (m *machine) nameOf(side int, text string) int {
	id, err := nixie.ParseID(text)
	if err != nil {
		m.Fatal(err)
	}
	return m.name(side, id)
}

// record logs the progress of deliveries that a process holds or held, if both stores can.
func (m *machine) record(r *rapid.T) {
	p := m.process(r)
	sut, ok := p.sut.(lease.ProgressLog)
	if !ok {
		r.Skip("the store has no ProgressLog")
	}
	var at [2][]*nixie.Delivery
	for _, l := range m.some(r) {
		if l.by == p {
			at[0], at[1] = append(at[0], l.sut), append(at[1], l.ref)
		}
	}
	if len(at[0]) == 0 {
		r.Skip("it claimed none of them")
	}
	progress := rapid.SampledFrom([]lease.Progress{lease.Waiting, lease.Begun, lease.Succeeded, lease.Succeeded}).Draw(r, "progress")
	err, want := sut.LogProgress(progress, at[0]...), p.ref.(lease.ProgressLog).LogProgress(progress, at[1]...)
	if (err == nil) != (want == nil) {
		m.Fatalf("record: error is %v, of the reference %v", err, want)
	}
}

// settleMany settles all pairs in one call, most of them as successes, some of them twice.
func (m *machine) settleMany(r *rapid.T) {
	p := m.process(r)
	badly := rapid.SampledFrom([]int{0, 0, 3, 5, 9}).Draw(r, "every nth badly")
	pairs := m.pairs
	if rapid.Bool().Draw(r, "some twice") {
		pairs = append(pairs[:len(pairs):len(pairs)], m.some(r)...)
	}
	sut, ref := make([]nixie.Settlement, len(pairs)), make([]nixie.Settlement, len(pairs))
	for i, l := range pairs {
		sut[i], ref[i] = nixie.Settlement{Verb: nixie.Complete, Delivery: l.sut}, nixie.Settlement{Verb: nixie.Complete, Delivery: l.ref}
		if badly > 0 && i%badly == badly-1 {
			sut[i], ref[i] = m.settlement(r, l)
		}
	}
	m.settleBoth(p, "settle many", sut, ref)
}

// die claims and buries messages, so that there are letters to work on.
func (m *machine) die(r *rapid.T) {
	before := m.received
	m.claim(r)
	var sut, ref []nixie.Settlement
	for _, l := range m.pairs[max(len(m.pairs)-(m.received-before), 0):] {
		x, y := m.settlement(r, l)
		x.Verb, y.Verb, x.Waiver, y.Waiver = nixie.Bury, nixie.Bury, nixie.NoWaiver, nixie.NoWaiver
		sut, ref = append(sut, x), append(ref, y)
	}
	p := m.process(r)
	m.settleBoth(p, "bury", sut, ref)
}

// waivers has what a settlement with a verb may say; of the others none.
var waivers = map[nixie.Verb][]nixie.Waiver{
	nixie.Retry:   {nixie.NoWaiver, nixie.NoWaiver, nixie.WaiveTry},
	nixie.Release: {nixie.NoWaiver, nixie.WaiveSnooze, nixie.WaiveUnknown, nixie.WaiveUntried},
}

func (m *machine) settlement(r *rapid.T, l pair) (sut, ref nixie.Settlement) {
	s := nixie.Settlement{
		Verb: rapid.SampledFrom([]nixie.Verb{
			nixie.Complete, nixie.Retry, nixie.Retry, nixie.Release, nixie.Discard, nixie.Bury, nixie.Bury, nixie.Hold, nixie.Halt,
		}).Draw(r, "verb"),
		Delay: rapid.SampledFrom([]time.Duration{0, 0, 5 * time.Second, time.Minute}).Draw(r, "delay"),
	}
	if free := waivers[s.Verb]; free != nil {
		s.Waiver = rapid.SampledFrom(free).Draw(r, "waiver")
	}
	if rapid.Bool().Draw(r, "failed") {
		s.Failure = &nixie.Failure{
			Generation: l.ref.Generation, Attempt: l.ref.Attempts, StartedAt: m.clock.Now(), FailedAt: m.clock.Now(), Decision: s.Verb,
			Class:  rapid.SampledFrom([]nixie.Class{nixie.ClassTransient, nixie.ClassPermanent}).Draw(r, "class"),
			Reason: rapid.SampledFrom([]nixie.Reason{nixie.ReasonHandler, nixie.ReasonTimeout}).Draw(r, "reason"),
			Text:   rapid.SampledFrom([]string{"one", "two"}).Draw(r, "text"),
		}
	}
	// The stores do not agree yet how many retries one message with two failures counts.
	if s.Failure != nil && s.Verb != nixie.Retry && rapid.IntRange(0, 4).Draw(r, "second") == 0 {
		second := *s.Failure
		second.Text, second.Reason = "two at once", nixie.ReasonUnknown
		s.Second = &second
	}
	if status := rapid.SampledFrom([]nixie.Status{"", nixie.StatusOpen, nixie.StatusReview, nixie.StatusQuarantined}).Draw(r,
		"status"); s.Verb != nixie.Hold {
		s.Burial = burial(status)
	} else {
		s.Burial = burial(nixie.StatusReview)
	}
	s.Burial.Fingerprint = rapid.SampledFrom([]string{"v1:a", "v1:b"}).Draw(r, "fingerprint")
	s.Burial.Redrivable = rapid.SampledFrom([]bool{true, true, false}).Draw(r, "redrivable")
	if step := rapid.SampledFrom([]string{"", "", "s1", "s2"}).Draw(r, "step"); step != "" && !l.ref.Done(step) {
		l.sut.Steps, l.ref.Steps = append(l.sut.Steps, step), append(l.ref.Steps, step)
	}
	if s.Verb != nixie.Release && rapid.IntRange(0, 3).Draw(r, "followed") == 0 {
		s.Then = m.follows(r)
	}
	sut, ref = s, s
	sut.Delivery, ref.Delivery = l.sut, l.ref
	return sut, ref
}

// follows draws messages that follow a settlement.
func (m *machine) follows(r *rapid.T) []nixie.Message {
	list := m.messages(r)
	for i := range list {
		list[i].OnConflict = nixie.ReturnExisting
	}
	return list
}

func (m *machine) extend(r *rapid.T) {
	p, lease := m.process(r), rapid.SampledFrom([]time.Duration{time.Second, 30 * time.Second, 0}).Draw(r, "lease")
	var sut, ref []*nixie.Delivery
	for _, l := range m.some(r) {
		sut, ref = append(sut, l.sut), append(ref, l.ref)
	}
	m.sameCodes("extend", p.sut.Extend(m.ctx, sut, lease), p.ref.Extend(m.ctx, ref, lease))
}

func (m *machine) amend(r *rapid.T) {
	if len(m.ids) == 0 {
		r.Skip("no messages")
	}
	p := m.process(r)
	change := m.change(r)
	now := m.clock.Now()
	var sut, ref []nixie.ID
	for _, pair := range rapid.SliceOfN(rapid.SampledFrom(m.ids), 1, 2).Draw(r, "messages") {
		rs, _, err := p.ref.Messages(m.ctx, nixie.Filter{IDs: []nixie.ID{pair[1]}}, store.Page{})
		if err != nil {
			r.Fatal(err)
		}
		if len(rs) == 0 || !m.void(&rs[0], now) { // removed from both, or leased or queued, depending on the store
			sut, ref = append(sut, pair[0]), append(ref, pair[1])
		}
	}
	m.sameCodes("amend", p.sut.Amend(m.ctx, sut, change), p.ref.Amend(m.ctx, ref, change))
	m.followed()
}

func (m *machine) change(r *rapid.T) store.Change {
	c := change(rapid.SampledFrom(store.ChangeVerbs()).Draw(r, "change"))
	c.At = m.clock.Now().Add(rapid.SampledFrom([]time.Duration{-time.Second, 0, time.Second, 10 * time.Second}).Draw(r, "at"))
	c.Queue = m.queue(r)
	c.Free = rapid.Bool().Draw(r, "free")
	c.Hold = &nixie.Failure{Decision: nixie.Hold, Class: nixie.ClassPermanent, Reason: nixie.ReasonPoison, Text: "held",
		FailedAt: m.clock.Now()}
	c.Burial = burial(nixie.StatusReview)
	return c
}

// lettersOf reads the letters of both stores, in pairs.
func (m *machine) lettersOf(p *process) [][2]nixie.Letter {
	sut, err := allLetters(m.ctx, p.sut, nixie.Filter{})
	if err != nil {
		m.Fatal(err)
	}
	ref, err := allLetters(m.ctx, p.ref, nixie.Filter{})
	if err != nil {
		m.Fatal(err)
	}
	slices.SortFunc(sut, func(a, b nixie.Letter) int { return m.name(0, a.Message.ID) - m.name(0, b.Message.ID) })
	slices.SortFunc(ref, func(a, b nixie.Letter) int { return m.name(1, a.Message.ID) - m.name(1, b.Message.ID) })
	if len(sut) != len(ref) {
		m.Fatalf("%d letters, of the reference %d", len(sut), len(ref))
	}
	pairs := make([][2]nixie.Letter, 0, len(ref))
	for i := range ref {
		pairs = append(pairs, [2]nixie.Letter{sut[i], ref[i]})
	}
	return pairs
}

// resolve applies events to letters. Letters that need review are redriven with force.
func (m *machine) resolve(r *rapid.T) {
	p := m.process(r)
	letters := m.lettersOf(p)
	if len(letters) == 0 {
		r.Skip("no letters")
	}
	var sut, ref []store.Resolution
	for range rapid.IntRange(1, 2).Draw(r, "resolutions") {
		i := rapid.IntRange(0, len(letters)-1).Draw(r, "letter")
		x := store.Resolution{
			Event: rapid.SampledFrom([]store.Event{
				store.OnRedrive, store.OnRedrive, store.OnRedrive, store.OnDiscard, store.OnHold, store.OnUnhold, store.OnRequalify,
				store.OnRestore, store.OnNote, store.OnPurge, store.OnConfirm,
			}).Draw(r, "event"),
			Actor: "ann", Reason: rapid.SampledFrom([]string{"why", "why", ""}).Draw(r, "reason"),
			Force:       rapid.Bool().Draw(r, "force") || letters[i][1].Status == nixie.StatusReview || letters[i][1].NeedsReview,
			MaxRedrives: rapid.IntRange(0, 2).Draw(r, "max redrives"),
			Statuses:    rapid.SampledFrom([][]nixie.Status{nil, nil, {nixie.StatusOpen}}).Draw(r, "statuses"),
		}
		if x.Event == store.OnRedrive {
			x.ExpiresIn = rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(r, "expires in")
		}
		y := x
		// The audit has the hash of what a notice said before, and that names an ID of its store.
		hashed := letters[i][1].Message.Type == nixie.TypeDeadLetter
		if rapid.Bool().Draw(r, "edited") && x.Event == store.OnRedrive && !hashed {
			edit := store.Edit{Body: []byte(rapid.SampledFrom([]string{"", "fixed", "{}"}).Draw(r, "body")),
				Headers: letters[i][1].Message.Headers}
			ours, its := edit, edit
			ours.Revision, its.Revision = letters[i][0].Revision, letters[i][1].Revision
			if rapid.IntRange(0, 3).Draw(r, "read before") == 0 {
				ours.Revision, its.Revision = ours.Revision-1, its.Revision-1
			}
			x.Edit, y.Edit = &ours, &its
		}
		x.Letter, y.Letter = letters[i][0].ID, letters[i][1].ID
		if len(m.plans) > 0 && rapid.Bool().Draw(r, "in operation") {
			in := rapid.SampledFrom(m.plans).Draw(r, "operation")
			x.Operation, y.Operation = in.ids[0], in.ids[1]
			if x.Event != store.OnConfirm && rapid.IntRange(0, 9).Draw(r, "another event") > 0 {
				x.Event, y.Event = in.event, in.event
			}
			if x.Event != store.OnRedrive {
				x.Edit, y.Edit = nil, nil
			}
		}
		sut, ref = append(sut, x), append(ref, y)
	}
	m.sameCodes("resolve", p.sut.Resolve(m.ctx, sut), p.ref.Resolve(m.ctx, ref))
}

func (m *machine) plan(r *rapid.T) {
	p := m.process(r)
	f := nixie.Filter{Statuses: []nixie.Status{rapid.SampledFrom(nixie.Statuses()).Draw(r, "status")}}
	op := store.Operation{Actor: "ann", Reason: "r", Event: rapid.SampledFrom([]store.Event{store.OnRedrive, store.OnRedrive,
		store.OnRedrive, store.OnNote, store.OnHold, store.OnDiscard, store.OnPurge}).Draw(r, "event")}
	sut, err := p.sut.Plan(m.ctx, op, f, 0)
	ref, want := p.ref.Plan(m.ctx, op, f, 0)
	m.sameCode("plan", err, want)
	m.plans = append(m.plans, plan{[2]nixie.ID{sut.ID, ref.ID}, op.Event})
	for _, of := range m.plans {
		x, err := store.FindOperation(m.ctx, p.sut, store.OperationQuery{ID: of.ids[0], Next: 100})
		y, want := store.FindOperation(m.ctx, p.ref, store.OperationQuery{ID: of.ids[1], Next: 100})
		m.sameCode("operation", err, want)
		m.same("letters to go", len(x.Next), len(y.Next))
	}
}

// plan is an operation of both stores.
type plan struct {
	ids   [2]nixie.ID // in sut and ref
	event store.Event
}

// repeat makes those items of an operation pending again that died again.
func (m *machine) repeat(r *rapid.T) {
	if len(m.plans) == 0 || len(m.others("")) > 0 {
		r.Skip("no operation, or a lease is over")
	}
	p, of := m.process(r), rapid.SampledFrom(m.plans).Draw(r, "operation")
	_, err := p.sut.Plan(m.ctx, store.Operation{ID: of.ids[0]}, nixie.Filter{}, 0)
	_, want := p.ref.Plan(m.ctx, store.Operation{ID: of.ids[1]}, nixie.Filter{}, 0)
	m.sameCode("repeat", err, want)
}

// compareOperations compares what became of the items of all operations, and adds them up.
func (m *machine) compareOperations(p *process) {
	sut, _, err := p.sut.Operations(m.ctx, store.OperationQuery{}, store.Page{Limit: 1000})
	ref, _, want := p.ref.Operations(m.ctx, store.OperationQuery{}, store.Page{Limit: 1000})
	m.sameCode("operations", err, want)
	m.same("number of operations", len(sut), len(ref))
	for i := range sut {
		x, y := &sut[i], &ref[i]
		m.same("operation "+string(x.Event), []any{x.Selected, x.Done, x.Skipped, x.Failed, x.Pending, x.Outcome},
			[]any{y.Selected, y.Done, y.Skipped, y.Failed, y.Pending, y.Outcome})
		if !addsUp(x) || x.Selected != x.Done+x.Skipped+x.Failed+x.Pending {
			m.Fatalf("the counts of operation %+v do not add up", x)
		}
	}
}

func (m *machine) pause(r *rapid.T) {
	m.configure(m.queue(r), rapid.SampledFrom([]bool{true, false, false}).Draw(r, "paused"))
}

func (m *machine) query(r *rapid.T) {
	p := m.process(r)
	one := int64(1)
	f := rapid.SampledFrom([]nixie.Filter{
		{}, {Queues: []string{"a"}}, {Reasons: []nixie.Reason{nixie.ReasonTimeout}}, {Text: "ON"},
		{Fingerprints: []string{"v1:a"}}, {Fingerprints: []string{"v1:a", "v1:b"}},
		{Statuses: []nixie.Status{nixie.StatusOpen}}, {Died: nixie.Times{Before: m.clock.Now()}}, {Age: nixie.Durations{Min: time.Second}},
		{Died: nixie.Times{After: m.clock.Now().Add(-time.Hour), Before: m.clock.Now().Add(-time.Second)}},
		{Age: nixie.Durations{Min: time.Second, Max: time.Hour}, Died: nixie.Times{After: m.clock.Now().Add(-3 * time.Hour)}},
		{Attempts: nixie.Range{Max: &one}}, {Crashes: nixie.Range{Min: &one}},
	}).Draw(r, "filter")
	sut, err := allLetters(m.ctx, p.sut, f)
	ref, want := allLetters(m.ctx, p.ref, f)
	m.sameCode("letters", err, want)
	m.same("letters that match", m.seeLetters(0, sut), m.seeLetters(1, ref))
	by := rapid.SampledFrom([]store.GroupBy{store.ByFingerprint, store.ByReason, store.ByStatus, store.ByQueue, store.ByHour,
		store.ByRedrivable, store.ByType, store.ByAttempts, store.ByReview, store.ByClass}).Draw(r, "by")
	x, _, err := p.sut.Count(m.ctx, f, store.Counting{By: []store.GroupBy{by}, Scan: store.ScanAll, Described: true})
	y, _, want := p.ref.Count(m.ctx, f, store.Counting{By: []store.GroupBy{by}, Scan: store.ScanAll, Described: true})
	m.sameCode("groups", err, want)
	m.same("groups by "+string(by), seeGroups(x[0]), seeGroups(y[0]))
	n, _, err := p.sut.Count(m.ctx, f, store.Counting{By: []store.GroupBy{by, store.ByStatus}, Scan: store.ScanAll})
	k, _, want := p.ref.Count(m.ctx, f, store.Counting{By: []store.GroupBy{by, store.ByStatus}, Scan: store.ScanAll})
	m.sameCode("counts", err, want)
	m.same("counts by "+string(by), n, k)
}

func seeGroups(gs []store.Group) []string {
	var seen []string
	for _, g := range gs {
		seen = append(seen, fmt.Sprint(g.Key, g.Count, at(g.FirstAt), at(g.LastAt)))
	}
	slices.Sort(seen)
	return seen
}

// advance moves the time on by a random amount or to the end of a lease.
func (m *machine) advance(r *rapid.T) {
	steps := []time.Duration{time.Millisecond, time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute}
	if n := len(m.pairs); n > 0 {
		if end := m.pairs[n-1].ref.Lease.ExpiresAt.Sub(m.clock.Now()); end > time.Millisecond {
			steps = append(steps, end, end-time.Millisecond)
		}
	}
	m.clock.Advance(rapid.SampledFrom(steps).Draw(r, "by"))
}

func (m *machine) crash(r *rapid.T) {
	i := rapid.IntRange(0, len(m.processes)-1).Draw(r, "process")
	p := m.processes[i]
	m.sut.Crash(p.sut)
	m.ref.Crash(p.ref)
	m.replace(i)
}

// leave closes a process.
func (m *machine) leave(r *rapid.T) {
	i := rapid.IntRange(0, len(m.processes)-1).Draw(r, "process")
	p := m.processes[i]
	m.sameCode("close", p.sut.Close(), p.ref.Close())
	m.replace(i)
	// Some stores also end other leases at a close, so the machine ends them in both.
	for _, queue := range m.others("") {
		m.claimFrom(m.processes[i], queue, nixie.Want{Max: 1})
	}
	m.vanished = nil
}

func (m *machine) replace(i int) {
	m.vanished = append(m.vanished, m.processes[i])
	m.processes[i] = m.join()
}
