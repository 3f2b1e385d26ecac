package redrive_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/store/sqlite"
)

// fakeClock moves only when a caller waits or the test says so.
type fakeClock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *fakeClock { return &fakeClock{now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)} }

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *fakeClock) Wait(ctx context.Context, d time.Duration) error {
	c.Add(d)
	return ctx.Err()
}

func open(t *testing.T, c *fakeClock) *sqlite.Store {
	t.Helper()
	st, err := sqlite.Open(filepath.Join(t.TempDir(), "nixie.db"), sqlite.Options{Clock: c.Now, Reserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// bury makes n dead letters, each a second younger than the one before.
func bury(t *testing.T, st store.Store, c *fakeClock, n int, change func(i int, b *nixie.Burial)) {
	t.Helper()
	for i := range n {
		m := nixie.Message{Queue: "orders", Key: fmt.Sprintf("order-%03d", i), Body: []byte("{}")}
		if _, err := st.Enqueue(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		buryNext(t, st, c, func(b *nixie.Burial) {
			if change != nil {
				change(i, b)
			}
		})
		c.Add(time.Second)
	}
}

// buryNext claims one message and lets it die.
func buryNext(t *testing.T, st store.Store, c *fakeClock, change func(*nixie.Burial)) {
	t.Helper()
	ds, err := st.Claim(t.Context(), "orders", nixie.Want{Max: 1})
	if err != nil || len(ds) != 1 {
		t.Fatalf("claim: %d, %v", len(ds), err)
	}
	b := &nixie.Burial{Cause: nixie.CauseExhausted, Status: nixie.StatusOpen, Signature: "timeout: slow", Fingerprint: "v1-a",
		Redrivable: true, Rule: "reason:timeout"}
	change(b)
	f := &nixie.Failure{Generation: ds[0].Generation, Attempt: 1, StartedAt: c.Now(), FailedAt: c.Now(), Class: nixie.ClassTransient,
		Reason: nixie.ReasonTimeout, Text: "slow"}
	if err := errors.Join(st.Settle(t.Context(),
		[]nixie.Settlement{{Delivery: ds[0], Verb: nixie.Bury, Failure: f, Burial: b}})...); err != nil {
		t.Fatal(err)
	}
}

func engine(t *testing.T, c redrive.Config, clock *fakeClock) *redrive.Engine {
	t.Helper()
	c.Clock, c.Wait = clock.Now, clock.Wait
	e, err := redrive.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func plan(t *testing.T, e *redrive.Engine, max int) store.Operation {
	t.Helper()
	op, err := e.Plan(t.Context(), store.Operation{Event: store.OnRedrive, Actor: "ann", Reason: "repaired"},
		nixie.Filter{Statuses: []nixie.Status{nixie.StatusOpen}}, max)
	if err != nil {
		t.Fatal(err)
	}
	return op
}

// statuses counts letters by status.
func statuses(t *testing.T, st store.Store) map[nixie.Status]int64 {
	t.Helper()
	groups, _, err := st.Count(t.Context(), nixie.Filter{}, store.Counting{By: []store.GroupBy{store.ByStatus}, Scan: store.ScanAll,
		Described: true})
	if err != nil {
		t.Fatal(err)
	}
	got := map[nixie.Status]int64{}
	for _, g := range groups[0] {
		got[nixie.Status(g.Key)] = g.Count
	}
	return got
}

// once checks that each letter was redriven at most once and returns how many were.
func once(t *testing.T, st store.Store) int {
	t.Helper()
	list, _, err := st.Audit(t.Context(), store.AuditFilter{Chain: "orders"}, store.Page{Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[nixie.ID]bool{}
	for _, e := range list {
		if e.Event != store.OnRedrive {
			continue
		}
		if seen[e.Subject] {
			t.Errorf("letter %s was redriven twice", e.Subject)
		}
		seen[e.Subject] = true
	}
	return len(seen)
}

func TestR28_MaxIsExact(t *testing.T) {
	clock := newClock()
	st := open(t, clock)
	bury(t, st, clock, 20, nil)
	var groups []int64
	e := engine(t, redrive.Config{Store: st, Batch: 5, Progress: func(op store.Operation) { groups = append(groups, op.Done) }}, clock)
	r, err := e.Run(t.Context(), plan(t, e, 7).ID)
	if err != nil || r.Selected != 7 || r.Done != 7 || r.Skipped+r.Failed+r.Pending != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if !slices.Equal(groups, []int64{5, 7}) {
		t.Errorf("progress %v, want groups of 5 and 2", groups)
	}
	if got := once(t, st); got != 7 {
		t.Errorf("%d letters were redriven", got)
	}
	left, _, err := st.Letters(t.Context(), nixie.Filter{Statuses: []nixie.Status{nixie.StatusRedriving}}, store.Page{})
	if err != nil || left[0].Message.Key != "order-006" {
		t.Errorf("the oldest deaths do not go first: the youngest that went is %s, %v", left[0].Message.Key, err)
	}
}

// slow is a store whose commits take time.
type slow struct {
	store.Store
	clock *fakeClock
	took  time.Duration
	at    []time.Time // when each letter went
	onGo  func(n int)
}

func (s *slow) Resolve(ctx context.Context, list []store.Resolution) []error {
	for range list {
		s.at = append(s.at, s.clock.Now())
	}
	errs := s.Store.Resolve(ctx, list)
	s.clock.Add(s.took)
	if s.onGo != nil {
		s.onGo(len(s.at))
	}
	return errs
}

func TestR28_RateIsKept(t *testing.T) {
	for _, c := range []struct {
		rate float64
		took time.Duration
		n    int
	}{{50, 0, 120}, {50, 7 * time.Millisecond, 120}, {200, 40 * time.Millisecond, 300}, {1.0 / 6, 0, 5},
		{1000, 3 * time.Millisecond, 300}} {
		t.Run(fmt.Sprintf("%g a second, commits of %s", c.rate, c.took), func(t *testing.T) {
			clock := newClock()
			st := &slow{Store: memory.New(memory.Options{Clock: clock.Now}), clock: clock, took: c.took}
			bury(t, st, clock, c.n, nil)
			e := engine(t, redrive.Config{Store: st, Rate: c.rate, Stop: redrive.Stop{Share: -1}}, clock)
			op, start := plan(t, e, 0), clock.Now()
			if _, err := e.Run(t.Context(), op.ID); err != nil {
				t.Fatal(err)
			}
			if len(st.at) != c.n {
				t.Fatalf("%d letters went", len(st.at))
			}
			for i, at := range st.at {
				if allowed := c.rate*at.Sub(start).Seconds() + 1 + 1e-6; float64(i+1) > allowed {
					t.Fatalf("letter %d went after %s: at most %.2f were allowed", i+1, at.Sub(start), allowed)
				}
			}
			ideal, took := float64(c.n-1)/c.rate, st.at[c.n-1].Sub(start).Seconds()
			if took > ideal*1.05+c.took.Seconds() {
				t.Errorf("took %.3f s, the rate allows %.3f s", took, ideal)
			}
		})
	}
}

func TestRateDropsArrears(t *testing.T) {
	clock := newClock()
	st := &slow{Store: memory.New(memory.Options{Clock: clock.Now}), clock: clock}
	bury(t, st, clock, 60, nil)
	st.onGo = func(n int) {
		if n == 10 {
			clock.Add(time.Hour) // the process was stopped
		}
	}
	e := engine(t, redrive.Config{Store: st, Rate: 10}, clock)
	if _, err := e.Run(t.Context(), plan(t, e, 0).ID); err != nil {
		t.Fatal(err)
	}
	if again := st.at[10]; st.at[12].Sub(again) < 190*time.Millisecond {
		t.Errorf("after the stall letters went at once: %v", st.at[10:14])
	}
}

func TestR29_InterruptedAnywhere(t *testing.T) {
	const letters, batch = 12, 3
	for stop := range letters/batch + 1 {
		t.Run(fmt.Sprintf("after group %d", stop), func(t *testing.T) {
			clock := newClock()
			st := open(t, clock)
			bury(t, st, clock, letters, nil)
			ctx, cancel := context.WithCancel(t.Context())
			groups := 0
			e := engine(t, redrive.Config{Store: st, Batch: batch, Stop: redrive.Stop{Share: -1}, Progress: func(store.Operation) {
				if groups++; groups == stop {
					cancel()
				}
			}}, clock)
			op := plan(t, e, 0)
			if stop == 0 {
				cancel()
			}
			r, err := e.Run(ctx, op.ID)
			if done := int64(stop * batch); r.Done != done || r.Pending != letters-done || r.Selected != letters {
				t.Errorf("stopped with %+v", r.Operation)
			}
			if r.Pending > 0 && (!errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), op.ID.String())) {
				t.Errorf("error %v: want the context's, and the operation", err)
			}
			cancel()
			if r, err = e.Run(t.Context(), op.ID); err != nil || r.Done != letters || r.Pending != 0 {
				t.Errorf("resumed: %+v, %v", r, err)
			}
			if r, err = e.Run(t.Context(), op.ID); err != nil || r.Done != letters {
				t.Errorf("once more: %+v, %v", r, err)
			}
			if got := once(t, st); got != letters {
				t.Errorf("%d letters were redriven", got)
			}
		})
	}
}

// If a process dies between a commit and its answer, the next one finds the outcome in the store.
func TestR29_OutcomeUnknown(t *testing.T) {
	clock := newClock()
	st := &deaf{Store: open(t, clock)}
	bury(t, st, clock, 10, nil)
	e := engine(t, redrive.Config{Store: st, Batch: 4}, clock)
	op := plan(t, e, 0)
	if _, err := e.Run(t.Context(), op.ID); nixie.CodeOf(err) != nixie.CodeOutcomeUnknown {
		t.Fatalf("error %v", err)
	}
	if r, err := e.Run(t.Context(), op.ID); err != nil || r.Done != 10 {
		t.Errorf("resumed: %+v, %v", r, err)
	}
	if got := once(t, st); got != 10 {
		t.Errorf("%d letters were redriven", got)
	}
}

// deaf commits the second group and answers with an unknown outcome.
type deaf struct {
	store.Store
	calls int
}

func (d *deaf) Resolve(ctx context.Context, list []store.Resolution) []error {
	errs := d.Store.Resolve(ctx, list)
	if d.calls++; d.calls == 2 {
		for i := range errs {
			errs[i] = nixie.Errorf(nixie.CodeOutcomeUnknown, "connection is gone")
		}
	}
	return errs
}

func TestR33_TwoOverTheSameSet(t *testing.T) {
	clock := newClock()
	st := open(t, clock)
	const letters = 30
	bury(t, st, clock, letters, nil)
	results := make([]redrive.Result, 3)
	var wg sync.WaitGroup
	ops := make([]store.Operation, 2)
	for i := range ops {
		ops[i] = plan(t, engine(t, redrive.Config{Store: st}, clock), 0)
	}
	for i, id := range []nixie.ID{ops[0].ID, ops[1].ID, ops[0].ID} { // the first also by two processes
		wg.Go(func() {
			e, err := redrive.New(redrive.Config{Store: st, Batch: 7, Clock: clock.Now, Wait: clock.Wait})
			if err == nil {
				results[i], err = e.Run(context.Background(), id)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := once(t, st); got != letters {
		t.Errorf("%d letters were redriven", got)
	}
	if done := results[0].Done + results[1].Done; done != letters || results[0].Skipped+results[1].Skipped != letters {
		t.Errorf("%+v and %+v: each letter has to be done by one and skipped by the other", results[0].Operation, results[1].Operation)
	}
	if !reflect.DeepEqual(results[0].Operation, results[2].Operation) {
		t.Errorf("two runs of one operation differ: %+v, %+v", results[0].Operation, results[2].Operation)
	}
}

func TestRefusals(t *testing.T) {
	clock := newClock()
	st := open(t, clock)
	bury(t, st, clock, 4, func(i int, b *nixie.Burial) {
		b.NeedsReview, b.Redrivable = i == 1, i != 2
	})
	e := engine(t, redrive.Config{Store: st}, clock)
	r, err := e.Run(t.Context(), plan(t, e, 0).ID)
	if err != nil || r.Done != 2 || r.Skipped != 2 || len(r.Refused) != 2 || !strings.Contains(r.Refused[0].Why, "use force") {
		t.Errorf("%+v, %v", r, err)
	}
	if got := statuses(t, st); got[nixie.StatusOpen] != 2 || got[nixie.StatusRedriving] != 2 {
		t.Errorf("%v", got)
	}
}

func TestR30_LoopCap(t *testing.T) {
	clock := newClock()
	st := open(t, clock)
	bury(t, st, clock, 1, nil)
	e := engine(t, redrive.Config{Store: st, MaxRedrives: 2}, clock)
	for generation := 1; generation <= 3; generation++ {
		r, err := e.Run(t.Context(), plan(t, e, 0).ID)
		if err != nil {
			t.Fatal(err)
		}
		if generation == 3 {
			if r.Done != 0 || r.Skipped != 1 || !strings.Contains(r.Refused[0].Why, "the cap is 2") {
				t.Errorf("third redrive: %+v", r)
			}
			break
		}
		if r.Done != 1 {
			t.Fatalf("redrive %d: %+v", generation, r)
		}
		buryNext(t, st, clock, func(*nixie.Burial) {})
	}
	unlimited := engine(t, redrive.Config{Store: st, MaxRedrives: -1}, clock)
	if r, err := unlimited.Run(t.Context(), plan(t, unlimited, 0).ID); err != nil || r.Done != 1 {
		t.Errorf("without a cap: %+v, %v", r, err)
	}
}

func TestDiscard(t *testing.T) {
	clock := newClock()
	st := open(t, clock)
	bury(t, st, clock, 5, nil)
	e := engine(t, redrive.Config{Store: st}, clock)
	op, err := e.Plan(t.Context(), store.Operation{Event: store.OnDiscard, Actor: "ann", Reason: "test data"}, nixie.Filter{}, 3)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := e.Run(t.Context(), op.ID); err != nil || r.Done != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	if got := statuses(t, st); got[nixie.StatusDiscarded] != 3 || got[nixie.StatusOpen] != 2 {
		t.Errorf("%v", got)
	}
}

// If a newer message holds the dedupe key of a letter, that is reported for the letter. The others
// go, and the letter goes once the key is free.
func TestR36_ATakenKeyIsReportedAndTheRestGoes(t *testing.T) {
	clock := newClock()
	st := open(t, clock)
	enqueue := func(key string) {
		t.Helper()
		if _, err := st.Enqueue(t.Context(), nixie.Message{Queue: "orders", Key: key, DedupeKey: key}); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"a", "b", "c"} {
		enqueue(key)
		buryNext(t, st, clock, func(*nixie.Burial) {})
	}
	enqueue("b") // the newer one
	e := engine(t, redrive.Config{Store: st}, clock)
	r, err := e.Run(t.Context(), plan(t, e, 0).ID)
	if err != nil || r.Done != 2 || r.Skipped != 1 || r.Failed+r.Pending != 0 || len(r.Refused) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	left, _, err := st.Letters(t.Context(), nixie.Filter{Statuses: []nixie.Status{nixie.StatusOpen}}, store.Page{})
	if err != nil || len(left) != 1 || left[0].Message.Key != "b" || left[0].ID != r.Refused[0].Letter ||
		!strings.Contains(r.Refused[0].Why, `dedupe key "b"`) {
		t.Fatalf("%+v, refused %+v, %v", left, r.Refused, err)
	}
	for range 3 {
		ds, err := st.Claim(t.Context(), "orders", nixie.Want{Max: 1})
		if err != nil || len(ds) != 1 {
			t.Fatal(ds, err)
		}
		if err := st.Settle(t.Context(), []nixie.Settlement{{Delivery: ds[0], Verb: nixie.Complete}})[0]; err != nil {
			t.Fatal(err)
		}
	}
	if r, err := e.Run(t.Context(), plan(t, e, 0).ID); err != nil || r.Done != 1 || r.Skipped != 0 {
		t.Fatalf("once the key is free: %+v, %v", r, err)
	}
}

// A purge removes only letters with the statuses of its plan: a letter that was held after the plan
// was made stays.
func TestR26_WhatIsHeldMeanwhileIsNotPurged(t *testing.T) {
	clock := newClock()
	st := open(t, clock)
	bury(t, st, clock, 3, nil)
	e := engine(t, redrive.Config{Store: st}, clock)
	f := nixie.Filter{Statuses: []nixie.Status{nixie.StatusOpen}}
	op, err := e.Plan(t.Context(), store.Operation{Event: store.OnPurge, Actor: "ann", Reason: "old", Filter: filter.Text(f),
		Statuses: f.Statuses}, f, 0)
	if err != nil || op.Selected != 3 {
		t.Fatal(op, err)
	}
	found, err := store.FindOperation(t.Context(), st, store.OperationQuery{ID: op.ID, Next: 1})
	ids := found.Next
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Resolve(t.Context(), []store.Resolution{{Letter: ids[0], Event: store.OnHold, Actor: "bob"}})[0]; err != nil {
		t.Fatal(err)
	}
	if r, err := e.Run(t.Context(), op.ID); err != nil || r.Done != 2 || r.Skipped != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := statuses(t, st); got[nixie.StatusReview] != 1 || got[nixie.StatusOpen] != 0 {
		t.Errorf("what is left: %v", got)
	}
}

func TestRefusedInput(t *testing.T) {
	clock := newClock()
	st := open(t, clock)
	for _, c := range []struct {
		config redrive.Config
		says   string
	}{
		{redrive.Config{}, "no store"},
		{redrive.Config{Store: st, Batch: -1}, "batch is -1"},
		{redrive.Config{Store: st, Batch: redrive.MaxBatch + 1}, "batch is 1001"},
		{redrive.Config{Store: st, Rate: -1}, "rate is -1"},
		{redrive.Config{Store: st, Rate: 2e6}, "rate is 2e+06"},
		{redrive.Config{Store: st, MaxRedrives: -2}, "max_redrives is -2"},
	} {
		if _, err := redrive.New(c.config); nixie.CodeOf(err) != nixie.CodeInvalid || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q", c.config, err, c.says)
		}
	}
	e := engine(t, redrive.Config{Store: st}, clock)
	for _, op := range []store.Operation{{Event: store.OnBury, Actor: "a", Reason: "r"}, {Event: store.OnPurge, Actor: "a"},
		{Event: store.OnRedrive, Actor: "a"}, {Event: store.OnRedrive, Reason: "r"}} {
		if _, err := e.Plan(t.Context(), op, nixie.Filter{}, 0); nixie.CodeOf(err) != nixie.CodeInvalid {
			t.Errorf("%+v: %v", op, err)
		}
	}
	if _, err := e.Run(t.Context(), nixie.ID{1}); nixie.CodeOf(err) != nixie.CodeNotFound {
		t.Errorf("unknown operation: %v", err)
	}
}
