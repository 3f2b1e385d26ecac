package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

func letterClauses() []clause {
	return []clause{
		{"R21_HistoryIsWhole", historyIsWhole},
		{"R21_HistoryIsBounded", historyIsBounded},
		{"R30_FailsAgainSameLetter", failsAgain},
		{"HeldAgainSameLetter", heldAgain},
		{"QuarantinedWhenTheBurialSaysSo", quarantinedAgain},
		{"FlagsFollowTheLatestBurial", flagsFollow},
		{"OneLetterForAllDeaths", oneLetter},
	}
}

func historyIsWhole(b *fixture) {
	d := b.took("a")
	code := 75
	f := nixie.Failure{
		Generation: 1, Attempt: 1, StartedAt: b.clock.Now().Add(-time.Second), FailedAt: b.clock.Now(), Took: time.Second,
		Class: nixie.ClassTransient, Reason: nixie.ReasonCommandFailed, Type: "*exec.ExitError", Text: "line ü\n2",
		Context: []string{"outer", "inner"}, Stack: "main.go:1", Step: "send", Group: "by ü", Worker: "w", Node: "n", ExitCode: &code,
		LogLocation: "file.log", Steps: []string{"s"}, Decision: nixie.Bury,
		Attachments: []nixie.Attachment{{Name: "stderr", Data: []byte{0, 1, 2, 0xff}, Truncated: 9}},
	}
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Bury, Failure: &f, Burial: burial("")}))
	for _, history := range [][]nixie.Failure{b.letterOf(d.ID).History, b.record(d.ID).History} {
		same(b, "failures", len(history), 1)
		got := history[0]
		if got.Generation != 1 || got.Attempt != 1 || !got.StartedAt.Equal(f.StartedAt) || !got.FailedAt.Equal(f.FailedAt) ||
			got.Took != f.Took ||
			got.Class != f.Class || got.Reason != f.Reason || got.Type != f.Type || got.Text != f.Text ||
			!slices.Equal(got.Context, f.Context) ||
			got.Stack != f.Stack || got.Step != f.Step || got.Group != f.Group || got.Worker != f.Worker || got.Node != f.Node ||
			got.LogLocation != f.LogLocation ||
			!slices.Equal(got.Steps, f.Steps) || got.Decision != f.Decision {
			b.Fatalf("failure came back as\n%+v, want\n%+v", got, f)
		}
		if got.ExitCode == nil || *got.ExitCode != code {
			b.Fatalf("exit code is %v, want %d", got.ExitCode, code)
		}
		if len(got.Attachments) != 1 || got.Attachments[0].Name != "stderr" ||
			!bytes.Equal(got.Attachments[0].Data, f.Attachments[0].Data) || got.Attachments[0].Truncated != 9 {
			b.Fatalf("attachments came back as %+v", got.Attachments)
		}
	}
}

func historyIsBounded(b *fixture) {
	const more = 7
	b.put("a")
	for i := range nixie.MaxHistory + more {
		d := b.take("a")
		b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry, Failure: b.failure(d, fmt.Sprint(i))}))
	}
	d := b.take("a")
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Bury, Burial: burial("")}))
	l := b.letterOf(d.ID)
	same(b, "failures kept", len(l.History), nixie.MaxHistory)
	same(b, "failures dropped", l.HistoryDropped, more)
	same(b, "first", l.History[0].Text, "0")
	for i, f := range l.History[1:] {
		same(b, "text of a kept failure", f.Text, fmt.Sprint(i+more+1))
	}
}

func failsAgain(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	b.clock.Advance(time.Minute)
	b.ok(b.resolve(l.ID, store.OnRedrive))
	d := b.take("a")
	same(b, "generation", d.Generation, 2)
	b.clock.Advance(time.Second)
	f := b.failure(d, "again")
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Bury, Failure: f, Burial: burial(nixie.StatusOpen)}))
	got := b.letterOf(d.ID)
	same(b, "ID", got.ID, l.ID)
	same(b, "status", got.Status, nixie.StatusOpen)
	same(b, "history", len(got.History), 2)
	same(b, "redrives", got.Message.Redrives, 1)
	same(b, "generation", got.Message.Generation, 2)
	if !got.FirstFailedAt.Equal(l.FirstFailedAt) || !got.LastFailedAt.Equal(f.FailedAt) || !got.DiedAt.Equal(b.clock.Now()) {
		b.Fatalf("times are %s, %s, %s", got.FirstFailedAt, got.LastFailedAt, got.DiedAt)
	}
	if got.Revision <= l.Revision+1 {
		b.Fatalf("revision went from %d to %d over a redrive and a death", l.Revision, got.Revision)
	}
	same(b, "letters", len(b.letters(nixie.Filter{})), 1)
}

func heldAgain(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	b.ok(b.resolve(l.ID, store.OnRedrive))
	d := b.take("a")
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Hold, Failure: b.failure(d, "odd"), Burial: burial(nixie.StatusReview)}))
	b.status(l.ID, nixie.StatusReview)
}

func quarantinedAgain(b *fixture) {
	l := b.quarantined("a")
	same(b, "status", l.Status, nixie.StatusQuarantined)
	same(b, "redrives", l.Message.Redrives, 1)
	b.state(l.Message.ID, nixie.Dead)
	b.unchanged(func() { b.code(b.resolve(l.ID, store.OnRedrive), nixie.CodeConflict) })
	b.ok(b.resolve(l.ID, store.OnRequalify))
	b.ok(b.resolve(l.ID, store.OnRedrive))
	same(b, "redrives", b.take("a").Redrives, 2)
}

func flagsFollow(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	b.ok(b.resolve(l.ID, store.OnRedrive))
	d := b.take("a")
	next := &nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusReview, Signature: "other", Fingerprint: "v1:bb",
		NeedsReview: true, Rule: "validation"}
	f := b.failure(d, "again")
	f.Class, f.Reason = nixie.ClassPermanent, nixie.ReasonValidation
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Bury, Failure: f, Burial: next}))
	got := b.letter(l.ID)
	if got.Cause != next.Cause || got.Signature != "other" || got.Fingerprint != "v1:bb" || got.Redrivable || !got.NeedsReview ||
		got.Rule != "validation" || got.Class != nixie.ClassPermanent || got.Reason != nixie.ReasonValidation {
		b.Fatalf("letter after its second death is %+v", got)
	}
}

func oneLetter(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	for i := range 5 {
		b.ok(b.resolve(l.ID, store.OnRedrive))
		b.ok(b.settle(b.dying(b.take("a"), nixie.StatusOpen)))
		got := b.letters(nixie.Filter{})
		same(b, "letters", len(got), 1)
		same(b, "ID", got[0].ID, l.ID)
		same(b, "history", len(got[0].History), i+2)
	}
}

func redriveClauses() []clause {
	return []clause{
		{"StartsTheNextGeneration", startsNextGeneration},
		{"TheMessageKeepsTheMoment", keepsMomentOfRedrive},
		{"ItsAgeBeginsAnew", ageBeginsAnew},
		{"AnExpiredOneIsRefused", expiredIsRefused},
		{"SuccessResolvesTheLetter", successResolves},
		{"DiscardOfARedrivenOne", discardOfRedriven},
		{"R33_TwoRedrivesNoDouble", twoRedrives},
		{"NotRedrivableNeedsForce", needsForce},
		{"TheCapHolds", capHolds},
		{"CrashesStartAgain", crashesStartAgain},
		{"OldLeasesStayLost", oldLeasesStayLost},
	}
}

func startsNextGeneration(b *fixture) {
	d := b.took("a", nixie.Priority(2), nixie.Stream("s"), nixie.WithHeader(nixie.HeaderRequestID, "r"))
	b.ok(d.Step("one", func() error { return nil }))
	b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
	l := b.letterOf(d.ID)
	b.clock.Advance(time.Hour)
	b.ok(b.resolve(l.ID, store.OnRedrive))
	got := b.letter(l.ID)
	same(b, "status", got.Status, nixie.StatusRedriving)
	same(b, "state", got.Message.State, nixie.Queued)
	same(b, "history", len(got.History), 1)
	again := b.take("a")
	if again.ID != d.ID || again.Generation != 2 || again.Redrives != 1 || again.Attempts != 1 || again.Deliveries != 1 ||
		again.Crashes != 0 ||
		again.Priority != 2 || again.Stream != "s" || again.Header(nixie.HeaderRequestID) != "r" || !again.Done("one") || again.Abandoned {
		b.Fatalf("redriven message is %+v", again.Message)
	}
	if !again.EnqueuedAt.Equal(d.EnqueuedAt) || !again.FirstReceivedAt.Equal(d.FirstReceivedAt) || !again.EndedAt.IsZero() {
		b.Fatalf("first times changed: %s, %s, ended %s", again.EnqueuedAt, again.FirstReceivedAt, again.EndedAt)
	}
}

// keepsMomentOfRedrive shows what a message and its deliveries know of the last redrive, wherever
// the message lies. Before it they know nothing.
func keepsMomentOfRedrive(b *fixture) {
	d := b.took("a")
	known := func(of string, d *nixie.Delivery, l nixie.Letter, at time.Time, op nixie.ID) {
		b.Helper()
		if !d.RedrivenAt.Equal(at) || d.Operation != op || !d.FirstFailedAt.Equal(l.FirstFailedAt) {
			b.Fatalf("%s: redriven %s by %s, first failed %s; want %s, %s, %s", of, d.RedrivenAt, d.Operation, d.FirstFailedAt, at, op,
				l.FirstFailedAt)
		}
		same(b, of+": shown", b.record(d.ID).RedrivenAt.Equal(at), true)
	}
	known("new", d, nixie.Letter{}, time.Time{}, nixie.ID{})
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry, Failure: b.failure(d, "first")}))
	known("retried", b.take("a"), nixie.Letter{}, time.Time{}, nixie.ID{})
	b.clock.Advance(time.Minute)
	vanishes := func() *nixie.Delivery {
		b.clock.Advance(nixie.DefaultLease)
		d := b.take("a")
		same(b, "abandoned", d.Abandoned, true)
		return d
	}
	b.ok(b.settle(b.dying(vanishes(), nixie.StatusOpen)))
	l := b.letterOf(d.ID)
	same(b, "letter before", l.Message.RedrivenAt.IsZero(), true)

	b.clock.Advance(time.Hour)
	op := b.plan(store.OnRedrive, nixie.Filter{IDs: []nixie.ID{l.ID}}, 0)
	at := b.clock.Now()
	b.ok(b.resolution(store.Resolution{Letter: l.ID, Event: store.OnRedrive, Actor: "ann", Operation: op.ID}))
	same(b, "queued", b.letter(l.ID).Message.RedrivenAt.Equal(at), true)
	b.clock.Advance(time.Minute)
	d = b.take("a")
	known("redriven", d, l, at, op.ID)
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry, Failure: b.failure(d, "again")}))
	known("retried", b.take("a"), l, at, op.ID)
	d = vanishes()
	known("abandoned", d, l, at, op.ID)
	b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
	same(b, "dead again", b.letter(l.ID).Message.RedrivenAt.Equal(at), true)

	b.clock.Advance(time.Hour)
	op = b.plan(store.OnRedrive, nixie.Filter{IDs: []nixie.ID{l.ID}}, 0)
	b.ok(b.resolution(store.Resolution{Letter: l.ID, Event: store.OnRedrive, Actor: "ann", Operation: op.ID}))
	d = b.take("a")
	known("redriven again", d, l, b.clock.Now(), op.ID)
	b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
	b.clock.Advance(time.Hour)
	b.ok(b.resolve(l.ID, store.OnRedrive))
	d = b.take("a")
	known("redriven by no operation", d, l, b.clock.Now(), nixie.ID{})
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
	same(b, "succeeded", b.record(d.ID).RedrivenAt.Equal(b.clock.Now()), true)
}

// ageBeginsAnew shows that neither the ageing of priority nor the oldest of a queue counts the
// time before a redrive.
func ageBeginsAnew(b *fixture) {
	l := b.dead("low", nixie.StatusOpen, nixie.Priority(-1))
	b.clock.Advance(20 * nixie.DefaultPriorityAge)
	b.ok(b.resolve(l.ID, store.OnRedrive))
	same(b, "oldest", b.info().OldestAt.Equal(b.clock.Now()), true)
	b.put("fresh")
	b.keys(b.claim(1), "fresh")
	b.keys(b.claim(1), "low")
}

// expiredIsRefused shows that no redrive sends a message past its expiry, and that one may give it
// a new end, which is recorded.
func expiredIsRefused(b *fixture) {
	redrive := store.Resolution{Event: store.OnRedrive, Actor: "ann", Force: true}
	unlimited := redrive
	unlimited.Letter, unlimited.ExpiresIn = b.dead("unlimited", nixie.StatusOpen).ID, time.Hour
	b.ok(b.resolution(unlimited))
	same(b, "an end for one without", b.letter(unlimited.Letter).Message.ExpiresAt.IsZero(), true)
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("unlimited"), Verb: nixie.Complete}))

	end := b.clock.Now().Add(time.Hour)
	d := b.took("a", func(m *nixie.Message) { m.ExpiresAt = end })
	died := burial(nixie.StatusOpen)
	died.Cause, died.Redrivable = nixie.CauseExpired, false
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Bury, Failure: b.failure(d, "late"), Burial: died}))
	redrive.Letter = b.letterOf(d.ID).ID
	b.clock.Advance(time.Hour)
	b.unchanged(func() { b.code(b.resolution(redrive), nixie.CodeConflict) })

	redrive.Force, redrive.ExpiresIn = false, time.Minute
	b.ok(b.resolution(redrive))
	end = b.clock.Now().Add(time.Minute)
	d = b.take("a")
	same(b, "new end", d.ExpiresAt.Equal(end), true)
	same(b, "in the audit", b.amends(redrive.Letter)[0], "ann: expires at "+end.UTC().Format(time.RFC3339Nano))
	b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
	redrive.ExpiresIn = 0
	b.ok(b.resolution(redrive)) // it has not ended yet
	same(b, "kept end", b.take("a").ExpiresAt.Equal(end), true)

	for _, wrong := range [...]store.Resolution{
		{Event: store.OnRedrive, ExpiresIn: -1}, {Event: store.OnRedrive, ExpiresIn: nixie.MaxDelay + 1},
		{Event: store.OnHold, ExpiresIn: 1},
	} {
		wrong.Letter, wrong.Actor = redrive.Letter, "ann"
		b.code(b.resolution(wrong), nixie.CodeInvalid)
	}
}

func successResolves(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	b.ok(b.resolve(l.ID, store.OnRedrive))
	b.clock.Advance(time.Second)
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("a"), Verb: nixie.Complete}))
	got := b.letter(l.ID)
	same(b, "status", got.Status, nixie.StatusResolved)
	same(b, "state", got.Message.State, nixie.Succeeded)
	same(b, "history", len(got.History), 1)
	if !got.ResolvedAt.Equal(b.clock.Now()) {
		b.Fatalf("resolved at %s, want %s", got.ResolvedAt, b.clock.Now())
	}
}

func discardOfRedriven(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	b.ok(b.resolve(l.ID, store.OnRedrive))
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("a"), Verb: nixie.Discard}))
	b.status(l.ID, nixie.StatusDiscarded)
	b.state(l.Message.ID, nixie.Discarded)
}

func twoRedrives(b *fixture) {
	var rs []store.Resolution
	for i := range 20 {
		l := b.dead(fmt.Sprint(i), nixie.StatusOpen)
		rs = append(rs, store.Resolution{Letter: l.ID, Event: store.OnRedrive, Actor: "ann"})
	}
	other := b.join()
	answers := make(chan []error, 2)
	for _, st := range []store.Store{b.st, other} {
		go func() { answers <- st.Resolve(b.ctx, rs) }()
	}
	x, y := <-answers, <-answers
	for i := range rs {
		if (x[i] == nil) == (y[i] == nil) {
			b.Fatalf("letter %d: both redrives got %v and %v, want one success and one conflict", i, x[i], y[i])
		}
		for _, err := range []error{x[i], y[i]} {
			if err != nil {
				b.code(err, nixie.CodeConflict)
			}
		}
	}
	same(b, "claimed", len(b.claim(100)), 20)
	same(b, "claimed twice", len(b.claim(100)), 0)
}

func needsForce(b *fixture) {
	for i, flags := range []nixie.Burial{{}, {Redrivable: true, NeedsReview: true}, {NeedsReview: true}} {
		d := b.took(fmt.Sprint(i))
		s := b.dying(d, nixie.StatusOpen)
		s.Burial.Redrivable, s.Burial.NeedsReview = flags.Redrivable, flags.NeedsReview
		b.ok(b.settle(s))
		r := store.Resolution{Letter: b.letterOf(d.ID).ID, Event: store.OnRedrive, Actor: "ann"}
		b.unchanged(func() { b.code(b.resolution(r), nixie.CodeConflict) })
		r.Force = true
		b.ok(b.resolution(r))
		b.ok(b.settle(nixie.Settlement{Delivery: b.take(fmt.Sprint(i)), Verb: nixie.Complete}))
	}
}

func capHolds(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	r := store.Resolution{Letter: l.ID, Event: store.OnRedrive, Actor: "ann", MaxRedrives: 2}
	for range 2 {
		b.ok(b.resolution(r))
		b.ok(b.settle(b.dying(b.take("a"), nixie.StatusOpen)))
	}
	b.unchanged(func() { b.code(b.resolution(r), nixie.CodeConflict) })
	r.MaxRedrives = 0
	b.ok(b.resolution(r))
}

func crashesStartAgain(b *fixture) {
	b.took("a")
	b.clock.Advance(time.Minute)
	b.ok(b.settle(b.dying(b.take("a"), nixie.StatusOpen)))
	l := b.letters(nixie.Filter{})[0]
	same(b, "crashes of the letter", l.Message.Crashes, 1)
	b.ok(b.resolve(l.ID, store.OnRedrive))
	b.put("b", nixie.Priority(1))
	ds := b.claim(9)
	b.keys(ds, "b", "a")
	same(b, "crashes", ds[1].Crashes, 0)
}

func oldLeasesStayLost(b *fixture) {
	d := b.took("a")
	b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
	b.ok(b.resolve(b.letterOf(d.ID).ID, store.OnRedrive))
	again := b.take("a")
	b.code(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}), nixie.CodeLeaseLost)
	b.ok(b.settle(nixie.Settlement{Delivery: again, Verb: nixie.Complete}))
}
