package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/check"
	"github.com/nixie-go/nixie/store"
)

func adoptClauses() []clause {
	return []clause{
		{"KeepsEverything", adoptKeeps},
		{"TwiceAddsNothing", adoptTwice},
		{"ByOriginTwiceAddsNothing", adoptOrigin},
		{"ByOriginOfAServer", adoptServer},
		{"WhatIsHereAsAMessage", adoptLive},
		{"IDsOfSomethingElse", adoptConflicts},
		{"RedrivenAndResolved", adoptRedriven},
		{"R30_DiesAgainElsewhere", diesElsewhere},
		{"R30_NoLaterDeath", diesElsewhereTooLate},
		{"R30_DiesElsewhereOutOfItsStream", diesElsewhereOutOfItsStream},
		{"EveryStatus", adoptStatuses},
		{"HistoryStaysBounded", adoptHistory},
		{"DedupeKeyByScope", adoptKeys},
		{"EachWholeOrNotAtAll", adoptEach},
		{"NonsenseIsRefused", adoptNonsense},
		{"WithoutItsBodyIsNotSent", adoptWithoutBody},
		{"Audited", adoptAudited},
	}
}

// foreign returns a letter of a message that died elsewhere, with a value in every field.
func (b *fixture) foreign(key string) nixie.Letter {
	at := b.clock.Now().Add(-48 * time.Hour)
	code := 101
	l := nixie.Letter{
		ID: b.idOf("letter " + key),
		Message: nixie.Message{
			ID: b.idOf("message " + key), Queue: work, Type: "test", Key: key, DedupeKey: key, Body: []byte("body\x00of " + key),
			Headers:  []nixie.Header{{Name: "h", Value: "1"}, {Name: "h", Value: "2"}},
			Origin:   &nixie.Origin{System: "elsewhere", Channel: "c", MessageID: key, Key: []byte{}, Timestamp: at},
			Priority: 2, OrderGap: true, ExpiresAt: at.AddDate(0, 1, 0), Attempts: 3, Deliveries: 5, Crashes: 1, Generation: 3, Redrives: 2,
			Steps: []string{"one", "two"}, EnqueuedAt: at, RedrivenAt: at.Add(2 * time.Minute), FirstReceivedAt: at.Add(time.Second),
			EndedAt: at.Add(3 * time.Minute),
		},
		HistoryDropped: 4, Cause: nixie.CauseExhausted, Class: nixie.ClassTransient, Reason: nixie.ReasonTimeout,
		Signature: "timeout: slow", Fingerprint: "v1-bb", Status: nixie.StatusOpen, Redrivable: true, NeedsReview: true,
		Rule:          "reason:timeout",
		FirstFailedAt: at.Add(time.Minute), LastFailedAt: at.Add(2 * time.Minute), DiedAt: at.Add(3 * time.Minute),
		Operation: b.idOf("operation"), Note: "looked at", Revision: 7,
	}
	for i := range 2 {
		l.Notes = append(l.Notes, nixie.Note{At: at.Add(time.Duration(i) * time.Hour), By: "bob", Text: fmt.Sprint("asked ", i)})
	}
	for i := range 3 {
		failed := at.Add(time.Duration(i+1) * time.Second)
		l.History = append(l.History, nixie.Failure{
			Generation: 1, Attempt: i + 1, StartedAt: failed.Add(-time.Second), FailedAt: failed, Took: time.Second + 7,
			Class:  nixie.ClassTransient,
			Reason: nixie.ReasonTimeout, Type: "Slow", Text: fmt.Sprint("slow ", i), Context: []string{"a", "b"}, Stack: "stack",
			Step: "step", Group: "by hand",
			Worker: "w", Node: "n", ExitCode: &code, LogLocation: "log", Steps: []string{"one"}, Decision: nixie.Retry,
			NextAt:      failed.Add(time.Second),
			Attachments: []nixie.Attachment{{Name: "x", Data: []byte{0, 255, byte(i)}, Truncated: 3}, {Name: "x", Data: []byte("more")}},
		})
	}
	return l
}

// idOf makes an ID from a name.
func (b *fixture) idOf(name string) nixie.ID {
	h := nixie.HashBody([]byte(name))
	return nixie.ID(h[:16])
}

func (b *fixture) buryOne(l nixie.Letter) (nixie.Receipt, error) {
	b.Helper()
	receipts, errs := b.st.Adopt(b.ctx, []nixie.Letter{l}, "ann", "because")
	same(b, "number of receipts", len(receipts), 1)
	same(b, "number of answers", len(errs), 1)
	return receipts[0], errs[0]
}

func (b *fixture) adopted(l nixie.Letter) nixie.Letter {
	b.Helper()
	r, err := b.buryOne(l)
	b.ok(err)
	if r.Duplicate || r.ID.IsZero() {
		b.Fatalf("receipt of a new letter: %+v", r)
	}
	return b.letter(r.ID)
}

func adoptKeeps(b *fixture) {
	want := b.foreign("a")
	got := b.adopted(want)
	want.Message.State, want.Message.Hash = nixie.Dead, nixie.HashBody(want.Message.Body)
	want.Message.LastFailure, want.Message.LastReason = "slow 2", nixie.ReasonTimeout
	got.Artifacts = nil // a store may show the artifacts of the last failure
	if !reflect.DeepEqual(got, want) {
		b.Fatalf("letter came back as\n%+v, want\n%+v", got, want)
	}
	same(b, "dead", b.info().Dead, 1)
	b.keys(b.claim(9))

	least := nixie.Letter{Message: nixie.Message{Queue: work}, Cause: nixie.CauseAdopted, Status: nixie.StatusOpen, DiedAt: b.clock.Now()}
	got = b.adopted(least)
	same(b, "generation", got.Message.Generation, 1)
	same(b, "revision", got.Revision, 1)
	same(b, "IDs are made", got.ID.IsZero() || got.Message.ID.IsZero(), false)
	same(b, "time of enqueue", got.Message.EnqueuedAt.Equal(b.clock.Now()), true)
	same(b, "time of end", got.Message.EndedAt.Equal(b.clock.Now()), true)
}

// A letter whose body is elsewhere is not redriven, also by force and with an edit. It may be
// confirmed when something else has fetched and sent it, and discarded.
func adoptWithoutBody(b *fixture) {
	for _, on := range []store.Event{store.OnConfirm, store.OnDiscard} {
		l := b.foreign(string(on))
		l.Message.Origin.BodyAt, l.Message.Body, l.Status = "orders/1/7", nil, nixie.StatusReview
		got := b.adopted(l)
		same(b, "where the body lies", got.Message.Origin.BodyAt, "orders/1/7")
		for _, r := range []store.Resolution{
			{Letter: l.ID, Event: store.OnRedrive, Actor: "ann", Reason: "because"},
			{Letter: l.ID, Event: store.OnRedrive, Actor: "ann", Reason: "because", Force: true}, b.editing(l.ID, "another body"),
		} {
			err := b.resolution(r)
			b.code(err, nixie.CodeConflict)
			same(b, "it says where: "+err.Error(), strings.Contains(err.Error(), "has no body, which lay at orders/1/7"), true)
		}
		same(b, "status", b.letter(l.ID).Status, nixie.StatusReview)
		b.ok(b.resolve(l.ID, on))
	}
	l := b.foreign("both")
	l.Message.Origin.BodyAt = "orders/1/7"
	_, err := b.buryOne(l)
	b.code(err, nixie.CodeInvalid)
}

func adoptTwice(b *fixture) {
	l := b.foreign("a")
	b.adopted(l)
	b.ok(b.resolve(l.ID, store.OnHold))
	b.unchanged(func() {
		r, err := b.buryOne(l)
		b.ok(err)
		same(b, "receipt", r, nixie.Receipt{ID: l.ID, Duplicate: true})
		other := l
		other.Message.Body = []byte("another")
		r, err = b.buryOne(other)
		b.ok(err)
		same(b, "receipt of another body", r, nixie.Receipt{ID: l.ID, Duplicate: true, Different: true})
	})
}

func adoptOrigin(b *fixture) {
	l := b.foreign("a")
	l.ID, l.Message.ID = nixie.ID{}, nixie.ID{}
	first := b.adopted(l)
	b.unchanged(func() {
		r, err := b.buryOne(l)
		b.ok(err)
		same(b, "receipt", r, nixie.Receipt{ID: first.ID, Duplicate: true})
	})
	origin := *l.Message.Origin
	origin.Timestamp, l.Message.Origin = origin.Timestamp.In(time.FixedZone("east", 3600)), &origin // the same moment in another zone
	b.unchanged(func() {
		r, err := b.buryOne(l)
		b.ok(err)
		same(b, "receipt of the same moment elsewhere", r, nixie.Receipt{ID: first.ID, Duplicate: true})
	})
	origin.Key = nil // a nil key differs from an empty one
	l.Message.DedupeKey = ""
	b.adopted(l)

	// Two in one call give the same answers as in two calls.
	twin := b.foreign("twin")
	twin.ID, twin.Message.ID = nixie.ID{}, nixie.ID{}
	receipts, errs := b.st.Adopt(b.ctx, []nixie.Letter{twin, twin}, "ann", "")
	b.ok(errs[0])
	b.ok(errs[1])
	same(b, "the second of two", receipts[1], nixie.Receipt{ID: receipts[0].ID, Duplicate: true})
}

// adoptServer adopts one record before and after its server has a name, and the record of that name
// on another server.
func adoptServer(b *fixture) {
	l := b.foreign("a")
	l.ID, l.Message.ID, l.Message.DedupeKey = nixie.ID{}, nixie.ID{}, ""
	for _, earlier := range []nixie.Origin{*l.Message.Origin, {Database: "1", Prefix: "p", BodyHash: make([]byte, 32)}} {
		of := *l.Message.Origin
		of.Database, of.Prefix, of.BodyHash = earlier.Database, earlier.Prefix, earlier.BodyHash
		of.MessageID = "from " + earlier.Database
		l.Message.Origin = &of
		first := b.adopted(l)
		named := of
		named.Server, named.Database, named.Prefix, named.BodyHash = "s", "1", "p", make([]byte, 32)
		l.Message.Origin = &named
		b.unchanged(func() {
			r, err := b.buryOne(l)
			b.ok(err)
			same(b, "receipt of the named server", r, nixie.Receipt{ID: first.ID, Duplicate: true})
		})
	}
	here := *l.Message.Origin
	here.MessageID = "on two servers"
	l.Message.Origin = &here
	b.adopted(l)
	other := here
	other.Server = "another"
	l.Message.Origin = &other
	b.adopted(l)
}

func adoptLive(b *fixture) {
	id := b.put("a")
	l := b.foreign("a")
	l.ID, l.Message.ID = nixie.ID{}, id
	b.unchanged(func() {
		r, err := b.buryOne(l)
		b.ok(err)
		same(b, "receipt", r, nixie.Receipt{ID: id, Duplicate: true, Different: true})
	})
}

func adoptConflicts(b *fixture) {
	one, two := b.foreign("a"), b.foreign("b")
	b.adopted(one)
	b.adopted(two)
	b.unchanged(func() {
		mixed := one
		mixed.Message.ID = two.Message.ID
		_, err := b.buryOne(mixed)
		b.code(err, nixie.CodeConflict)
		mixed.ID, mixed.Message.ID = b.idOf("new"), one.Message.ID
		_, err = b.buryOne(mixed)
		b.code(err, nixie.CodeConflict)
	})
}

func adoptRedriven(b *fixture) {
	l := b.foreign("a")
	b.adopted(l)
	b.ok(b.resolve(l.ID, store.OnRedrive))
	d := b.take("a")
	same(b, "generation", d.Generation, 4)
	same(b, "redrives", d.Redrives, 3)
	same(b, "attempts", d.Attempts, 1)
	same(b, "deliveries", d.Deliveries, 1)
	same(b, "steps", fmt.Sprint(d.Steps), "[one two]")
	if d.Lease.Number <= int64(l.Message.Deliveries) {
		b.Fatalf("lease %d is not beyond the %d deliveries elsewhere", d.Lease.Number, l.Message.Deliveries)
	}
	b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
	again := b.letter(l.ID)
	same(b, "failures", len(again.History), 4)
	same(b, "dropped", again.HistoryDropped, 4)
	same(b, "first failure", again.FirstFailedAt.Equal(l.FirstFailedAt), true)
	b.ok(b.resolve(l.ID, store.OnRedrive))
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("a"), Verb: nixie.Complete}))
	b.status(l.ID, nixie.StatusResolved)
	b.state(l.Message.ID, nixie.Succeeded)
}

func adoptStatuses(b *fixture) {
	for _, status := range nixie.Statuses() {
		l := b.foreign("in " + string(status))
		l.Status = status
		if store.Adoption(status) == nil {
			b.unchanged(func() {
				_, err := b.buryOne(l)
				b.code(err, nixie.CodeInvalid)
			})
			continue
		}
		same(b, "status", b.adopted(l).Status, status)
	}
	b.ok(b.resolve(b.idOf("letter in review"), store.OnUnhold))
	b.ok(b.resolve(b.idOf("letter in quarantined"), store.OnRequalify))
	b.ok(b.resolve(b.idOf("letter in open"), store.OnDiscard))
	b.ok(b.resolve(b.idOf("letter in open"), store.OnRestore))
}

// adoptHistory has the largest count of dropped failures with the shortest and the longest history.
// A new failure drops the second oldest.
func adoptHistory(b *fixture) {
	long := b.foreign("long")
	for len(long.History) < nixie.MaxHistory {
		f := long.History[1]
		f.Text = fmt.Sprint("slow ", len(long.History))
		long.History = append(long.History, f)
	}
	short := b.foreign("short")
	short.History, short.HistoryDropped = short.History[:1], check.MaxCount
	for _, l := range []nixie.Letter{long, short} {
		got := b.adopted(l)
		same(b, "dropped", got.HistoryDropped, l.HistoryDropped)
		same(b, "failures", len(got.History), len(l.History))
		b.ok(b.resolve(l.ID, store.OnRedrive))
		b.ok(b.settle(b.dying(b.take(l.Message.Key), nixie.StatusOpen)))
		got = b.letter(l.ID)
		want := min(len(l.History)+1, nixie.MaxHistory)
		same(b, "failures after one more", len(got.History), want)
		same(b, "all failures ever", len(got.History)+got.HistoryDropped, len(l.History)+l.HistoryDropped+1)
		same(b, "first failure", got.History[0].Text, "slow 0")
		same(b, "last failure", got.History[want-1].Text, "it fails")
	}
}

func adoptKeys(b *fixture) {
	b.put("x", nixie.DedupeKey("a")) // scope active: a dead message holds no key
	l := b.foreign("a")
	b.adopted(l)
	b.code(b.resolve(l.ID, store.OnRedrive), nixie.CodeConflict)
	b.configure(nixie.QueueSettings{DedupeScope: nixie.DedupeUnresolved})
	b.adopted(b.foreign("b"))
	again := message("b", nixie.DedupeKey("b"))
	receipts, err := b.st.Enqueue(b.ctx, again)
	b.ok(err)
	same(b, "the key is held", receipts[0].Duplicate, true)
	b.put("y", nixie.DedupeKey("c"))
	b.unchanged(func() {
		_, err := b.buryOne(b.foreign("c"))
		b.code(err, nixie.CodeConflict)
	})
	b.ok(b.resolve(b.idOf("letter b"), store.OnDiscard))
	b.put("b", nixie.DedupeKey("b"))

	// Of two in one call the first has the key, as in two calls.
	first, second := b.foreign("d"), b.foreign("e")
	second.Message.DedupeKey = "d"
	receipts, errs := b.st.Adopt(b.ctx, []nixie.Letter{first, second}, "ann", "")
	b.ok(errs[0])
	var taken *nixie.DuplicateError
	if !errors.As(errs[1], &taken) || taken.Existing != first.Message.ID {
		b.Errorf("the second with key d: %v (%v), want that message %s has it", errs[1], receipts[1], first.Message.ID)
	}
}

func adoptEach(b *fixture) {
	bad := b.foreign("bad")
	bad.Cause = "nonsense"
	receipts, errs := b.st.Adopt(b.ctx, []nixie.Letter{b.foreign("a"), bad, b.foreign("b")}, "ann", "")
	b.ok(errs[0])
	b.code(errs[1], nixie.CodeInvalid)
	b.ok(errs[2])
	same(b, "receipt of a refused one", receipts[1], nixie.Receipt{})
	same(b, "letters", len(b.letters(nixie.Filter{})), 2)
	none, errs := b.st.Adopt(b.ctx, nil, "ann", "")
	same(b, "answers to nothing", len(none)+len(errs), 0)
}

func adoptNonsense(b *fixture) {
	long := strings.Repeat("x", nixie.MaxAttachment+1)
	at := time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC)
	for what, spoil := range map[string]func(*nixie.Letter){
		"queue":       func(l *nixie.Letter) { l.Message.Queue = "" },
		"key":         func(l *nixie.Letter) { l.Message.Key = "a\nb" },
		"damage":      func(l *nixie.Letter) { l.Damage = []string{"headers"} },
		"class":       func(l *nixie.Letter) { l.Class = "" },
		"reason":      func(l *nixie.Letter) { l.Reason = "x" },
		"hash":        func(l *nixie.Letter) { l.Message.Hash = nixie.HashBody(nil) },
		"attempts":    func(l *nixie.Letter) { l.Message.Attempts = 6 },
		"crashes":     func(l *nixie.Letter) { l.Message.Crashes = 6 },
		"negative":    func(l *nixie.Letter) { l.Message.Attempts = -1 },
		"huge":        func(l *nixie.Letter) { l.HistoryDropped = check.MaxCount + 1 },
		"generation":  func(l *nixie.Letter) { l.Message.Generation = 2 },
		"dropped all": func(l *nixie.Letter) { l.History = nil },
		"history":     func(l *nixie.Letter) { l.History = make([]nixie.Failure, nixie.MaxHistory+1) },
		"died":        func(l *nixie.Letter) { l.DiedAt = time.Time{} },
		"before 1970": func(l *nixie.Letter) { l.DiedAt = at },
		"1970":        func(l *nixie.Letter) { l.DiedAt = time.Unix(0, 0) },
		"after 2261":  func(l *nixie.Letter) { l.Message.ExpiresAt = at.AddDate(400, 0, 0) },
		"NUL":         func(l *nixie.Letter) { l.Note = "a\x00" },
		"UTF-8":       func(l *nixie.Letter) { l.Signature = "\xff" },
		"note":        func(l *nixie.Letter) { l.Note = long },
		"notes":       func(l *nixie.Letter) { l.Notes = make([]nixie.Note, nixie.MaxNotes+1) },
		"its note":    func(l *nixie.Letter) { l.Notes[0].Text = long },
		"author":      func(l *nixie.Letter) { l.Notes[0].By = "\xff" },
		"noted":       func(l *nixie.Letter) { l.Notes[0].At = at },
		"steps":       func(l *nixie.Letter) { l.Message.Steps = make([]string, nixie.MaxSteps+1) },
		"step":        func(l *nixie.Letter) { l.Message.Steps = []string{"\xff"} },
		"origin":      func(l *nixie.Letter) { l.Message.Origin = &nixie.Origin{System: "\xff"} },
		"origin key":  func(l *nixie.Letter) { l.Message.Origin = &nixie.Origin{Key: []byte(long)} },
		"text":        func(l *nixie.Letter) { l.History[0].Text = long },
		"stack":       func(l *nixie.Letter) { l.History[0].Stack = long },
		"context":     func(l *nixie.Letter) { l.History[0].Context = make([]string, nixie.MaxContext+1) },
		"attempt":     func(l *nixie.Letter) { l.History[0].Attempt = -1 },
		"took":        func(l *nixie.Letter) { l.History[0].Took = -1 },
		"failed":      func(l *nixie.Letter) { l.History[0].FailedAt = time.Time{} },
		"failed long": func(l *nixie.Letter) { l.History[0].FailedAt = at },
		"of failure":  func(l *nixie.Letter) { l.History[0].Class = "x" },
		"its steps":   func(l *nixie.Letter) { l.History[0].Steps = make([]string, nixie.MaxSteps+1) },
		"its worker":  func(l *nixie.Letter) { l.History[0].Worker = "\xff" },
		"attachment":  func(l *nixie.Letter) { l.History[0].Attachments[0].Data = []byte(long) },
		"truncated":   func(l *nixie.Letter) { l.History[0].Attachments[0].Truncated = -1 },
		"its name":    func(l *nixie.Letter) { l.History[0].Attachments[0].Name = "\xff" },
	} {
		l := b.foreign("a")
		spoil(&l)
		b.unchanged(func() {
			if _, err := b.buryOne(l); nixie.CodeOf(err) != nixie.CodeInvalid && nixie.CodeOf(err) != nixie.CodeLimit {
				b.Fatalf("%s: error is %v", what, err)
			}
		})
	}
	b.unchanged(func() {
		_, errs := b.st.Adopt(b.ctx, []nixie.Letter{b.foreign("a")}, "", "r")
		b.code(errs[0], nixie.CodeInvalid)
		_, errs = b.st.Adopt(b.ctx, make([]nixie.Letter, nixie.MaxBatch+1), "ann", "r")
		b.code(errs[0], nixie.CodeLimit)
		large := make([]nixie.Letter, nixie.MaxBatchBytes/nixie.MaxBody+1)
		body := make([]byte, nixie.MaxBody)
		for i := range large {
			large[i] = b.foreign(fmt.Sprint(i))
			large[i].Message.Body = body
		}
		_, errs = b.st.Adopt(b.ctx, large, "ann", "r")
		b.code(errs[len(large)-1], nixie.CodeLimit)
	})
}

func adoptAudited(b *fixture) {
	l := b.adopted(b.foreign("a"))
	entries, err := allEntries(b.ctx, b.st, work)
	b.ok(err)
	same(b, "entries", len(entries), 1)
	e := entries[0]
	if e.Event != store.OnAdopt || e.Actor != "ann" || e.Reason != "because" || e.Subject != l.ID || !e.At.Equal(b.clock.Now()) {
		b.Fatalf("entry is %+v", e)
	}
}
