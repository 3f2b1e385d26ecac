package office_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// counter is an office over a memory store whose clock the test moves.
type counter struct {
	*testing.T
	*office.Office
	st  *memory.Store
	now time.Time
}

func newCounter(t *testing.T) *counter {
	d := &counter{T: t, now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return d.now }
	d.st = memory.New(memory.Options{Clock: clock, Owner: "worker-1"})
	o, err := office.New(office.Config{Store: d.st, Actor: "ann@desk", Clock: clock})
	d.ok(err)
	d.Office = o
	return d
}

func (d *counter) ok(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *counter) put(queue string, n int) {
	d.Helper()
	for i := range n {
		_, err := d.st.Enqueue(d.Context(), nixie.Message{Queue: queue, Key: fmt.Sprint(queue, i)})
		d.ok(err)
	}
}

func (d *counter) claim(queue string, n int) []*nixie.Delivery {
	d.Helper()
	ds, err := d.st.Claim(d.Context(), queue, nixie.Want{Max: n, Lease: time.Minute})
	d.ok(err)
	return ds
}

func (d *counter) settle(delivery *nixie.Delivery, verb nixie.Verb) {
	d.Helper()
	s := nixie.Settlement{Delivery: delivery, Verb: verb}
	if verb == nixie.Retry {
		s.Failure = &nixie.Failure{Generation: delivery.Generation, Attempt: delivery.Attempts, Reason: nixie.ReasonTimeout, Text: "slow",
			Decision: verb}
	}
	d.ok(errors.Join(d.st.Settle(d.Context(), []nixie.Settlement{s})...))
}

// stalls returns what Stalled lists, with the counts.
func (d *counter) stalls(leases int) []string {
	d.Helper()
	list, err := d.Stalled(d.Context(), nil, leases)
	d.ok(err)
	var kinds []string
	for _, s := range list {
		kinds = append(kinds, fmt.Sprint(s.What, " ", s.Queue, " ", s.Count))
	}
	return kinds
}

// inspected is a store that knows its processes.
type inspected struct {
	*memory.Store
	owners []store.Owner
}

func (s *inspected) Features() store.Features {
	f := s.Store.Features()
	f.Inspect = func(context.Context) (store.Health, error) { return store.Health{Owners: s.owners}, nil }
	return f
}

// A breaker that is not closed holds up its queue, unless its process has ended.
func TestStalledByABreaker(t *testing.T) {
	d := newCounter(t)
	d.put("a", 3)
	d.claim("a", 1)
	kept := func(key string, b store.Breaker) {
		value, err := json.Marshal(b)
		d.ok(err)
		_, err = d.st.Features().Documents.Write(d.Context(), store.Writing{Changes: []store.DocumentChange{
			{DocumentKey: store.DocumentKey{Space: "breaker", Key: key}, Verb: store.PutDocument, Value: value}}})
		d.ok(err)
	}
	open := store.Breaker{Owner: "worker-1", Queue: "a", Type: "send", Reason: nixie.ReasonTimeout, State: "open"}
	kept("of an earlier process", open)
	d.now = d.now.Add(time.Second)
	began := d.now
	open.Type, open.Reason, open.Until = "mail", nixie.ReasonDependency, d.now.Add(30*time.Second)
	kept("open", open)
	kept("tried", store.Breaker{Owner: "worker-1", Queue: "a", Reason: nixie.ReasonTimeout, State: "half-open"})
	open.Owner = "worker-2"
	kept("gone", open)
	kept("elsewhere", store.Breaker{Owner: "worker-3", Queue: "elsewhere", State: "open"})
	st := &inspected{d.st, []store.Owner{{Name: "worker-1", Alive: true, StartedAt: began}, {Name: "worker-2"},
		{Name: "worker-3", Alive: true}}}
	o, err := office.New(office.Config{Store: st, Actor: "ann@desk", Clock: func() time.Time { return d.now }})
	d.ok(err)
	list, err := o.Stalled(d.Context(), []string{"a"}, 0)
	d.ok(err)
	var got []string
	for _, s := range list {
		got = append(got, fmt.Sprint(s.What, " ", s.Queue, " ", s.Count, " ", s.Text))
	}
	want := []string{
		"breaker a 2 worker-1 holds back messages without a type after failures of timeout: its breaker is half-open",
		"breaker a 2 worker-1 holds back messages of type mail after failures of dependency: its breaker is open " +
			"until 2026-05-04T12:00:31Z",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestStalled(t *testing.T) {
	d := newCounter(t)
	d.put("a", 3)
	d.claim("a", 2)
	if got := d.stalls(0); len(got) > 0 {
		t.Fatalf("fresh leases are stalled: %q", got)
	}
	d.now = d.now.Add(2 * time.Minute)
	if got := d.stalls(0); !slices.Equal(got, []string{"lease-over a 2"}) {
		t.Fatalf("leases that are over: %q", got)
	}
	held := d.claim("a", 1) // to be judged
	for range 20 {
		d.now = d.now.Add(50 * time.Second)
		d.ok(errors.Join(d.st.Extend(d.Context(), held, time.Minute)...))
	}
	d.claim("a", 2)
	if got := d.stalls(0); !slices.Equal(got, []string{"long-lease a 2"}) {
		t.Fatalf("a lease held for 20 minutes, ordinary ones last 30 s: %q", got)
	}
	if got := d.stalls(100); len(got) > 0 {
		t.Fatalf("it is not longer than 100 leases: %q", got)
	}
	d.put("b", 1)
	for range 100 {
		d.settle(d.claim("b", 1)[0], nixie.Retry)
	}
	_, err := d.Pause(d.Context(), []string{"b"}, "look")
	d.ok(err)
	if got := d.stalls(100); !slices.Equal(got, []string{"paused b 1", "retry-storm b 100"}) {
		t.Fatalf("a paused queue with a retry storm: %q", got)
	}
	list, err := d.Worded(office.ForPages).Stalled(t.Context(), []string{"b"}, 100)
	d.ok(err)
	paused, retried := &list[0], &list[1]
	if paused.Text != "1 message waiting: look, ann@desk" || !paused.Since.Equal(d.now) {
		t.Errorf("the pause is %+v", paused)
	}
	if retried.Text != "100 retries in the last hour, 1 message in retry now" || retried.Since.IsZero() || retried.Since.After(d.now) {
		t.Errorf("the retry storm is %+v", retried)
	}
	_, err = d.Resume(d.Context(), []string{"b"}, "it is over")
	d.ok(err)
	d.settle(d.claim("b", 1)[0], nixie.Complete)
	if got := d.stalls(100); len(got) > 0 {
		t.Fatalf("a retry storm whose messages have ended: %q", got)
	}
}

// A worker's first claim after a pause finds nothing. Its claim after the queue is resumed finds
// the message.
func TestAPauseIsNoticedAtTheNextPoll(t *testing.T) {
	d := newCounter(t)
	d.put("a", 2)
	source := store.NewSource(d.st, "a")
	got, err := source.Receive(t.Context(), nixie.Want{Max: 1})
	d.ok(err)
	if len(got) != 1 {
		t.Fatalf("received %d messages, want 1", len(got))
	}
	_, err = d.Pause(t.Context(), []string{"a"}, "look")
	d.ok(err)
	if got, err := source.Receive(t.Context(), nixie.Want{Max: 1}); len(got) > 0 || err != nil {
		t.Fatalf("received %d messages of a paused queue, %v", len(got), err)
	}
	d.settle(got[0], nixie.Complete)
	_, err = d.Resume(t.Context(), []string{"a"}, "looked")
	d.ok(err)
	if got, err := source.Receive(t.Context(), nixie.Want{Max: 1}); len(got) != 1 || err != nil {
		t.Fatalf("received %d messages of a resumed queue, %v", len(got), err)
	}
}

// drainStep completes one message at each poll of a drain.
func (d *counter) drainStep(queue string, seen *[]string) func(context.Context, time.Duration) error {
	return func(context.Context, time.Duration) error {
		d.now = d.now.Add(time.Minute)
		for _, m := range d.claim(queue, 1) {
			*seen = append(*seen, m.Key)
			d.settle(m, nixie.Complete)
		}
		return nil
	}
}

func TestDrainWaitsUntilNothingIsLeft(t *testing.T) {
	for _, c := range []struct {
		name    string
		dueOnly bool
		timeout time.Duration
		drained bool
		left    int64
		handled int
	}{
		{"all", false, 0, true, 0, 3},
		{"due only", true, 0, true, 1, 2},
		{"timeout", false, time.Second, false, 1, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newCounter(t)
			d.put("a", 2)
			_, err := d.st.Enqueue(t.Context(), nixie.Message{Queue: "a", Key: "later", Delay: 10 * time.Minute})
			d.ok(err)
			var handled []string
			v, err := d.Drain(t.Context(), &office.DrainRequest{
				Queue: "a", Reason: "moving", DueOnly: c.dueOnly, Timeout: c.timeout, Wait: d.drainStep("a", &handled),
			})
			d.ok(err)
			if v.Drained != c.drained || v.Scheduled != c.left || len(handled) != c.handled {
				t.Errorf("drain gives %+v after %q", v, handled)
			}
			if _, err := d.st.Enqueue(t.Context(), nixie.Message{Queue: "a"}); nixie.CodeOf(err) != nixie.CodeConflict {
				t.Errorf("enqueue into a closed queue: %v", err)
			}
		})
	}
}

func TestPurgeGoesOnUntilNothingIsLeft(t *testing.T) {
	d := newCounter(t)
	d.put("a", 2_500)
	d.claim("a", 3)
	steps := 0
	v, err := d.Purge(t.Context(), &office.PurgeRequest{Queue: "a", Reason: "test data", Progress: func(office.PurgeView) { steps++ }})
	d.ok(err)
	if v.Canceled != 2_497 || v.Leased != 3 || steps != 3 {
		t.Errorf("purge gives %+v in %d steps", v, steps)
	}
	if _, err := d.Purge(t.Context(), &office.PurgeRequest{Queue: "a"}); nixie.CodeOf(err) != nixie.CodeInvalid {
		t.Errorf("purge without a reason: %v", err)
	}
}

// sum computes the hash of an exported entry from the documentation of audit export alone.
func sum(t *testing.T, e *office.AuditLink) string {
	link, err := hex.DecodeString(e.Before)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{e.Queue, fmt.Sprint(e.Number), fmt.Sprint(e.At.UnixNano()), e.Actor, string(e.Event), e.Subject,
		e.Reason, e.Operation} {
		link = binary.BigEndian.AppendUint64(link, uint64(len(field)))
		link = append(link, field...)
	}
	s := sha256.Sum256(link)
	return hex.EncodeToString(s[:])
}

func TestAnExportedAuditCanBeCheckedElsewhere(t *testing.T) {
	d := newCounter(t)
	d.put("a", 3)
	d.put("b", 1)
	_, err := d.Pause(t.Context(), []string{"a", "b"}, "=look, \"there\"\n")
	d.ok(err)
	d.now = d.now.Add(1234567891 * time.Nanosecond)
	_, err = d.Purge(t.Context(), &office.PurgeRequest{Queue: "a", Reason: "ünicode"})
	d.ok(err)
	n, before := 0, strings.Repeat("0", 64)
	for e, err := range d.ExportAudit(t.Context(), store.AuditFilter{}) {
		d.ok(err)
		if e.Number == 1 {
			before = strings.Repeat("0", 64)
		}
		if e.Before != before || sum(t, &e) != e.Hash {
			t.Errorf("entry %+v has another hash: %s", e, sum(t, &e))
		}
		before = e.Hash
		n++
	}
	if n != 6 { // two pauses, three cancels, one purge
		t.Errorf("%d entries, want 6", n)
	}
}
