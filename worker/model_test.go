package worker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// plan describes one random run of a worker.
type plan struct {
	seed                  uint64
	messages, concurrency int
	prefetch              int
	lease, timeout, drain time.Duration
	settleEach, abort     bool
	stopAfter             time.Duration
	faults                float64 // share of calls of the source that go wrong
	restless              bool    // handlers that do not always succeed at once
}

func draw(t *rapid.T) plan {
	p := plan{
		seed:        rapid.Uint64().Draw(t, "seed"),
		messages:    rapid.IntRange(0, 60).Draw(t, "messages"),
		concurrency: rapid.IntRange(1, 8).Draw(t, "concurrency"),
		lease:       time.Duration(rapid.IntRange(1, 40).Draw(t, "lease")) * time.Second,
		timeout:     rapid.SampledFrom([]time.Duration{0, time.Second, 10 * time.Second}).Draw(t, "timeout"),
		drain:       rapid.SampledFrom([]time.Duration{-1, 0, time.Second}).Draw(t, "drain"),
		settleEach:  rapid.Bool().Draw(t, "settle each"),
		abort:       rapid.Bool().Draw(t, "abort"),
		stopAfter:   time.Duration(rapid.IntRange(0, 200_000).Draw(t, "stop after")) * time.Millisecond,
		faults:      rapid.SampledFrom([]float64{0, 0, 0.05, 0.3, 0.9}).Draw(t, "faults"),
		restless:    rapid.Bool().Draw(t, "restless"),
	}
	p.prefetch = rapid.IntRange(p.concurrency, 40).Draw(t, "prefetch")
	return p
}

// faulty is a source that fails at random and counts its calls.
type faulty struct {
	*store.Source
	plan

	mu      sync.Mutex
	rng     *rand.Rand
	ends    map[leaseKey]time.Time // of the lease as the store has it
	ran     map[leaseKey]bool
	excused map[leaseKey]bool // something went wrong with it
	applied map[leaseKey]int  // settlements that the store accepted
	wrong   []string
}

type leaseKey struct {
	id     nixie.ID
	number int64
}

func keyOf(d *nixie.Delivery) leaseKey { return leaseKey{d.ID, d.Lease.Number} }

func (f *faulty) roll() float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rng.Float64()
}

// fails reports whether this call fails, and how.
func (f *faulty) fails() (bool, error) {
	if f.roll() >= f.faults {
		return false, nil
	}
	codes := []nixie.Code{nixie.CodeUnavailable, nixie.CodeOutcomeUnknown, nixie.CodeInternal}
	return true, coded(codes[int(f.roll()*3)])
}

func (f *faulty) complain(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wrong = append(f.wrong, fmt.Sprintf(format, args...))
}

func (f *faulty) Receive(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	if bad, err := f.fails(); bad {
		return nil, err
	}
	got, err := f.Source.Receive(ctx, want)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range got {
		f.ends[keyOf(d)] = d.Lease.ExpiresAt
	}
	return got, err
}

func (f *faulty) Extend(ctx context.Context, ds []*nixie.Delivery, lease time.Duration) []error {
	if bad, err := f.fails(); bad {
		f.excuse(ds)
		if f.roll() < 0.2 {
			return nil
		}
		return each(len(ds), err)
	}
	errs := f.Source.Extend(ctx, ds, lease)
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, err := range errs {
		if err == nil {
			f.ends[keyOf(ds[i])] = time.Now().Add(lease)
		}
	}
	return errs
}

func (f *faulty) excuse(ds []*nixie.Delivery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range ds {
		f.excused[keyOf(d)] = true
	}
}

func (f *faulty) Settle(ctx context.Context, sts []nixie.Settlement) []error {
	var ds []*nixie.Delivery
	for _, st := range sts {
		ds = append(ds, st.Delivery)
	}
	bad, fault := f.fails()
	if bad {
		f.excuse(ds)
	}
	if bad && f.roll() < 0.7 {
		return each(len(sts), fault)
	}
	errs := f.Source.Settle(ctx, sts)
	f.mu.Lock()
	for i, err := range errs {
		if err == nil {
			f.applied[keyOf(ds[i])]++
		}
	}
	f.mu.Unlock()
	if bad { // it happened, and the caller does not learn it
		return each(len(sts), coded(nixie.CodeOutcomeUnknown))
	}
	return errs
}

// Handle returns any outcome.
func (f *faulty) Handle(ctx context.Context, d *nixie.Delivery) error {
	f.mu.Lock()
	if f.ran[keyOf(d)] {
		f.wrong = append(f.wrong, "ran twice on one claim: "+d.Key)
	}
	f.ran[keyOf(d)] = true
	if !time.Now().Before(f.ends[keyOf(d)]) {
		f.wrong = append(f.wrong, "begun without a lease: "+d.Key)
	}
	f.mu.Unlock()
	if d.Abandoned {
		f.complain("an abandoned one is run: %s", d.Key)
	}
	if !f.restless {
		return nil
	}
	wait(ctx, time.Duration(f.roll()*f.roll()*float64(20*time.Second)))
	switch int(f.roll() * 12) {
	case 0:
		return errBoom
	case 1:
		return nixie.Permanent(errBoom)
	case 2:
		return nixie.RetryAfter(errBoom, time.Second)
	case 3:
		panic("boom")
	case 4:
		runtime.Goexit()
	case 5:
		return nixie.Verdict(nixie.Discard, errBoom)
	case 6:
		return nixie.Verdict(nixie.Release, errBoom)
	case 7:
		return d.Step("one", func() error { wait(ctx, time.Second); return ctx.Err() })
	case 8:
		<-ctx.Done()
		return ctx.Err()
	}
	return ctx.Err()
}

// TestModel runs workers at random. In each run these hold:
//
//   - no claim runs twice or without a lease
//   - the number of deliveries in hand is bounded
//   - Run returns with nothing in hand
//   - every delivery is settled once, unless the source failed it
//   - another worker finds every message that is not at its end
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := draw(rt)
		var wrong []string
		synctest.Test(t, func(t *testing.T) { wrong = live(t, p) })
		if len(wrong) > 0 {
			rt.Fatalf("%+v\n%q", p, wrong)
		}
	})
}

func live(t *testing.T, p plan) []string {
	st := memory.New(memory.Options{})
	for i := range p.messages {
		fill(t, st, fmt.Sprint(i))
	}
	f := &faulty{
		Source: store.NewSource(st, "q"), plan: p, rng: rand.New(rand.NewPCG(p.seed, 1)),
		ends: map[leaseKey]time.Time{}, ran: map[leaseKey]bool{}, excused: map[leaseKey]bool{}, applied: map[leaseKey]int{},
	}
	g := start(t, worker.Config{
		Source: f, Handler: f, Concurrency: p.concurrency, Prefetch: p.prefetch,
		Lease: p.lease, Timeout: p.timeout, Drain: p.drain, SettleEach: p.settleEach,
	})
	for stop := time.Now().Add(p.stopAfter); time.Now().Before(stop); {
		if n := g.InHand(); n > p.prefetch {
			f.complain("%d in hand", n)
		}
		wait(t.Context(), min(p.stopAfter/7+1, time.Until(stop)))
	}
	if p.abort {
		g.Abort()
	}
	stopped := time.Now()
	g.end()
	if took := time.Since(stopped); took > 2*time.Minute {
		f.complain("took %s to stop", took)
	}
	for k, end := range f.ends {
		if n := f.applied[k]; n > 1 || n == 0 && !f.excused[k] {
			f.complain("settled %d times: %v, lease until %s", n, k, end)
		}
	}
	heir := start(t, worker.Config{Source: store.NewSource(st.Join("heir"), "q"), Handler: handler(succeed), Concurrency: 4})
	for end := time.Now().Add(time.Hour); p.messages > 0 && info(t, st).Unfinished() > 0 && time.Now().Before(end); {
		wait(t.Context(), 10*time.Second)
	}
	heir.end()
	if p.messages > 0 {
		if got := info(t, st); got.Unfinished() != 0 || got.Succeeded+got.Dead+got.Discarded != int64(p.messages) {
			f.complain("in the end: %+v", got)
		}
		sound(t, st)
	}
	return f.wrong
}
