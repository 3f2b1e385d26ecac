package storetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

func enqueueClauses() []clause {
	return []clause{
		{"EveryFieldComesBack", everyFieldComesBack},
		{"StoreFieldsAreIgnored", storeFieldsAreIgnored},
		{"IDsAreChosenWhenZero", idsAreChosen},
		{"AKnownIDIsAConflict", knownID},
		{"AllOrNone", allOrNone},
		{"NothingIsFine", nothingIsFine},
		{"AnImpossibleOriginIsInvalid", impossibleOrigin},
		{"WhatIsFarAwayIsKeptUntilThen", farMoments},
		{"NeverBeforeNotBefore", neverBeforeNotBefore},
		{"NeverBeforeDelay", neverBeforeDelay},
		{"TheLaterOfDelayAndNotBefore", laterOfBoth},
		{"BodiesComeBackByteForByte", bodiesComeBack},
		{"BodiesAreCopied", bodiesAreCopied},
		{"R23_UndecodableBodyIsKeptRaw", undecodableBody},
	}
}

func everyFieldComesBack(b *fixture) {
	m := nixie.Message{
		Queue: work, Type: "invoice", Key: "k-1 ü", Stream: "customer-7", DedupeKey: "d-1",
		Body: []byte{0, 1, 0xff, '\n'}, Priority: -2, ExpiresAt: b.clock.Now().Add(time.Hour),
		Headers: []nixie.Header{{Name: "a", Value: "1"}, {Name: "b", Value: ""}, {Name: "a", Value: "2\n"}},
		Origin: &nixie.Origin{
			System: "kafka", Channel: "orders", Partition: 3, Offset: 1 << 40, MessageID: "m",
			Key: []byte{}, Timestamp: b.clock.Now().Add(-time.Minute),
		},
	}
	receipts, err := b.st.Enqueue(b.ctx, m)
	b.ok(err)
	for _, got := range []nixie.Message{b.record(receipts[0].ID).Message, b.take(m.Key).Message} {
		same(b, "ID", got.ID, receipts[0].ID)
		same(b, "queue", got.Queue, m.Queue)
		same(b, "type", got.Type, m.Type)
		same(b, "key", got.Key, m.Key)
		same(b, "stream", got.Stream, m.Stream)
		same(b, "dedupe key", got.DedupeKey, m.DedupeKey)
		same(b, "body", string(got.Body), string(m.Body))
		same(b, "hash", got.Hash, nixie.HashBody(m.Body))
		same(b, "priority", got.Priority, m.Priority)
		same(b, "generation", got.Generation, 1)
		if !got.ExpiresAt.Equal(m.ExpiresAt) || !got.EnqueuedAt.Equal(b.clock.Now()) {
			b.Fatalf("expires at %s, enqueued at %s", got.ExpiresAt, got.EnqueuedAt)
		}
		if !slices.Equal(got.Headers, m.Headers) {
			b.Fatalf("headers are %q, want %q", got.Headers, m.Headers)
		}
		o := got.Origin
		if o == nil || o.System != "kafka" || o.Channel != "orders" || o.Partition != 3 || o.Offset != 1<<40 || o.MessageID != "m" ||
			!o.Timestamp.Equal(m.Origin.Timestamp) {
			b.Fatalf("origin is %+v, want %+v", o, m.Origin)
		}
		if o.Key == nil || len(o.Key) != 0 {
			b.Fatalf("key of the origin is %v: an empty key is not nil", o.Key)
		}
	}
}

// farMoments keeps a message for the year 9999, which people use for never, until then.
func farMoments(b *fixture) {
	never := time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)
	b.put("later", func(m *nixie.Message) { m.NotBefore = never })
	b.put("forever", func(m *nixie.Message) { m.ExpiresAt = never })
	b.put("old", func(m *nixie.Message) { m.NotBefore = time.Unix(-1<<40, 0) })
	moved := b.put("moved", nixie.Delay(time.Minute))
	at := change(store.Reschedule)
	at.At = never
	b.ok(b.change(moved, at))
	b.clock.Advance(time.Hour)
	ds := b.claim(9)
	slices.SortFunc(ds, func(x, y *nixie.Delivery) int { return strings.Compare(x.Key, y.Key) })
	b.keys(ds, "forever", "old")
	same(b, "expired", ds[0].ExpiresAt.Before(b.clock.Now()), false)
}

// impossibleOrigin refuses a message whose origin has a time without a form in UTC.
func impossibleOrigin(b *fixture) {
	late := time.Date(9999, time.December, 31, 23, 59, 59, 0, time.FixedZone("west", -3600))
	b.unchanged(func() {
		_, err := b.st.Enqueue(b.ctx, message("b"),
			message("a", func(m *nixie.Message) { m.Origin = &nixie.Origin{System: "elsewhere", Timestamp: late} }))
		b.code(err, nixie.CodeInvalid)
		if !strings.Contains(fmt.Sprint(err), "message 2 of 2: ") {
			b.Fatalf("error is %v, want which message it is about", err)
		}
	})
}

func storeFieldsAreIgnored(b *fixture) {
	m := message("a")
	m.State, m.Attempts, m.Deliveries, m.Crashes, m.Generation, m.Redrives = nixie.Dead, 7, 7, 7, 7, 7
	m.Steps, m.LastFailure, m.LeaseOwner = []string{"s"}, "x", "y"
	m.Hash, m.EnqueuedAt, m.EndedAt = nixie.Hash{1}, b.clock.Now().Add(-time.Hour), b.clock.Now()
	_, err := b.st.Enqueue(b.ctx, m)
	b.ok(err)
	d := b.take("a")
	if d.Attempts != 1 || d.Deliveries != 1 || d.Crashes != 0 || d.Generation != 1 || d.Redrives != 0 || len(d.Steps) != 0 ||
		d.LastFailure != "" || d.Hash != nixie.HashBody(m.Body) || !d.EnqueuedAt.Equal(b.clock.Now()) || !d.EndedAt.IsZero() {
		b.Fatalf("the caller has set fields of the store: %+v", d.Message)
	}
}

func idsAreChosen(b *fixture) {
	receipts, err := b.st.Enqueue(b.ctx, slices.Repeat([]nixie.Message{message("a")}, 100)...)
	b.ok(err)
	same(b, "receipts", len(receipts), 100)
	for i, r := range receipts {
		if r.ID[6]>>4 != 7 {
			b.Fatalf("ID %s is not a UUID of version 7", r.ID)
		}
		if i > 0 && bytes.Compare(receipts[i-1].ID[:], r.ID[:]) >= 0 {
			b.Fatalf("ID %s does not come after %s", r.ID, receipts[i-1].ID)
		}
	}
}

func knownID(b *fixture) {
	var ids store.IDs
	id := ids.New(b.clock.Now())
	given := message("a")
	given.ID = id
	receipts, err := b.st.Enqueue(b.ctx, given)
	b.ok(err)
	same(b, "ID", receipts[0].ID, id)
	other := ids.New(b.clock.Now())
	twin := message("x")
	twin.ID = other
	b.unchanged(func() {
		_, err := b.st.Enqueue(b.ctx, message("b"), given)
		b.code(err, nixie.CodeConflict)
		_, err = b.st.Enqueue(b.ctx, twin, twin)
		b.code(err, nixie.CodeConflict)
	})
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("a"), Verb: nixie.Complete}))
	_, err = b.st.Enqueue(b.ctx, given)
	b.code(err, nixie.CodeConflict)
}

func allOrNone(b *fixture) {
	b.put("before")
	b.unchanged(func() {
		bad := message("bad")
		bad.Queue = ""
		_, err := b.st.Enqueue(b.ctx, message("a"), message("b"), bad)
		b.code(err, nixie.CodeInvalid)
		bad = message("bad", nixie.Priority(nixie.MaxPriority+1))
		_, err = b.st.Enqueue(b.ctx, message("a"), bad, message("b"))
		b.code(err, nixie.CodeInvalid)
	})
}

func nothingIsFine(b *fixture) {
	receipts, err := b.st.Enqueue(b.ctx)
	b.ok(err)
	same(b, "receipts", len(receipts), 0)
	same(b, "answers", len(b.st.Settle(b.ctx, nil)), 0)
	same(b, "answers", len(b.st.Extend(b.ctx, nil, time.Second)), 0)
	same(b, "answers", len(b.st.Amend(b.ctx, nil, change("cancel"))), 0)
	same(b, "answers", len(b.st.Resolve(b.ctx, nil)), 0)
}

func neverBeforeNotBefore(b *fixture) {
	at := b.clock.Now().Add(time.Minute)
	id := b.put("a", func(m *nixie.Message) { m.NotBefore = at })
	if got := b.record(id).NotBefore; !got.Equal(at) {
		b.Fatalf("not before is %s, want %s", got, at)
	}
	b.clock.Advance(time.Minute - time.Millisecond)
	b.keys(b.claim(5))
	b.clock.Advance(time.Millisecond)
	b.keys(b.claim(5), "a")

	b.put("past", func(m *nixie.Message) { m.NotBefore = at.Add(-time.Hour) })
	b.keys(b.claim(5), "past")
}

func neverBeforeDelay(b *fixture) {
	b.put("a", nixie.Delay(time.Minute))
	b.clock.Advance(time.Minute - time.Millisecond)
	b.keys(b.claim(5))
	b.clock.Advance(time.Millisecond)
	b.keys(b.claim(5), "a")
}

func laterOfBoth(b *fixture) {
	at := b.clock.Now().Add(time.Minute)
	b.put("a", nixie.Delay(time.Second), func(m *nixie.Message) { m.NotBefore = at })
	b.clock.Advance(time.Second)
	b.keys(b.claim(5))
	b.clock.Advance(time.Minute)
	b.keys(b.claim(5), "a")
}

// bodiesComeBack takes bodies of 0 bytes to 1 MiB through all calls that return them: delivery,
// second delivery, listing, letter, redrive.
func bodiesComeBack(b *fixture) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{0, 1, 255, 4095, 4096, 4097, 65_536, 1 << 20} {
		body := make([]byte, size)
		for i := range body {
			body[i] = byte(random.Uint32())
		}
		check := func(where string, got nixie.Message) {
			b.Helper()
			if !bytes.Equal(got.Body, body) || got.Hash != nixie.HashBody(body) {
				b.Fatalf("%s: body of %d bytes came back as %d others", where, size, len(got.Body))
			}
		}
		b.put("a", func(m *nixie.Message) { m.Body = body })
		d := b.take("a")
		check("claim", d.Message)
		check("listing", b.record(d.ID).Message)
		b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry}))
		d = b.take("a")
		check("second claim", d.Message)
		b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
		l := b.letterOf(d.ID)
		check("letter", l.Message)
		b.ok(b.resolve(l.ID, store.OnRedrive))
		d = b.take("a")
		check("redrive", d.Message)
		b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
		check("log", b.record(d.ID).Message)
	}
}

func bodiesAreCopied(b *fixture) {
	m := message("a")
	_, err := b.st.Enqueue(b.ctx, m)
	b.ok(err)
	m.Body[0] = '!'
	d := b.take("a")
	same(b, "body", string(d.Body), "body of a")
	d.Body[0] = '?'
	same(b, "body", string(b.record(d.ID).Body), "body of a")
}

func undecodableBody(b *fixture) {
	raw := []byte("{\"half\": \xff\x00")
	l := b.dead("a", nixie.StatusOpen, func(m *nixie.Message) { m.Body = raw })
	if !bytes.Equal(l.Message.Body, raw) {
		b.Fatalf("the letter has %q, want the raw bytes %q", l.Message.Body, raw)
	}
}
