package worker_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// outage is a service that is down until a moment.
type outage struct {
	mu    sync.Mutex
	began time.Time
	until time.Duration
	runs  []time.Duration // of messages that need it
	by    map[string]int  // runs of a message
}

func (o *outage) handle(_ context.Context, d *nixie.Delivery) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := time.Since(o.began)
	if d.Type == "free" {
		return nil
	}
	if o.by == nil {
		o.by = map[string]int{}
	}
	o.by[d.Key]++
	o.runs = append(o.runs, at)
	if at < o.until {
		return nixie.WithReason(nixie.Transient(errBoom), nixie.ReasonDependency)
	}
	return nil
}

// changes collects the changes of breakers.
type changes struct {
	mu   sync.Mutex
	list []string
}

func (c *changes) observer() *nixie.Observer {
	return &nixie.Observer{Breaker: func(change nixie.BreakerChange) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.list = append(c.list, fmt.Sprintf("%s/%s/%s %s", change.Queue, change.Type, change.Reason, change.State))
	}}
}

func fillTyped(t *testing.T, st *memory.Store, kind string, n int) {
	t.Helper()
	for i := range n {
		if _, err := st.Enqueue(t.Context(), nixie.Message{Queue: "q", Type: kind, Key: fmt.Sprint(kind, i)}); err != nil {
			t.Fatal(err)
		}
	}
}

// noJitter retries soon, so that only the breaker stops the runs.
func noJitter(t *testing.T, attempts int) *policy.Policy {
	t.Helper()
	p, err := policy.New(policy.Config{MaxAttempts: attempts, Backoff: policy.Backoff{Base: time.Second, Factor: 1,
		Jitter: policy.JitterNone}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// counting are rules of a breaker for any reason.
var counting = policy.BreakerRules{Failures: 5, Successes: 3, OpenFor: 30 * time.Second, HalfOpenMax: 3}

// R10: while a breaker is open the worker receives nothing and uses no attempt. Then it tries three
// messages, and when they succeed all run.
func TestR10_OpenBreakerConsumesNoAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		fillTyped(t, st, "job", 200)
		o := &outage{began: time.Now(), until: 10*time.Minute + 5*time.Second}
		seen := &changes{}
		g := start(t, worker.Config{Source: store.NewSource(st, "q"), Concurrency: 4, Policy: noJitter(t, 20),
			Breaker: counting, Handler: handler(o.handle), Observer: seen.observer()})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		o.mu.Lock() // the worker is idle; this tells the race detector so

		// Five failures open it, and the runs under way end. Then the worker tries three messages
		// every thirty seconds, and the first failure opens the breaker again.
		if rounds := 20; len(o.runs) > 5+3+3*rounds || len(o.runs) < 5+rounds-1 {
			t.Errorf("%d runs in ten minutes of outage", len(o.runs))
		}
		for i, at := range o.runs {
			if inRound := at % (30 * time.Second); inRound > 5*time.Second {
				t.Errorf("run %d at %s: the breaker was open", i, at)
			}
		}
		attempts, deliveries := 0, 0
		for i := range 200 {
			m := message(t, st, fmt.Sprint("job", i))
			attempts += m.Attempts
			deliveries += m.Deliveries
			if m.Attempts != o.by[m.Key] || m.State != nixie.Queued {
				t.Errorf("%s: %d attempts, %d runs, %s", m.Key, m.Attempts, o.by[m.Key], m.State)
			}
		}
		if attempts != len(o.runs) || deliveries > 2*200+3*20 {
			t.Errorf("%d attempts and %d deliveries for %d runs", attempts, deliveries, len(o.runs))
		}
		o.mu.Unlock()

		time.Sleep(2 * time.Minute)
		g.end()
		if got := info(t, st); got.Succeeded != 200 || got.Dead != 0 {
			t.Errorf("afterwards: %+v", got)
		}
		list := seen.list
		if list[0] != "q/job/dependency open" || list[1] != "q/job/dependency half-open" || list[2] != "q/job/dependency open" ||
			list[len(list)-1] != "q/job/dependency closed" {
			t.Errorf("told %q", list)
		}
		sound(t, st)
	})
}

// R10: another type of the queue goes on. The messages of the open one are given back, and even
// after a long time none dies of its attempts or of its deliveries.
func TestR10_OtherTypesGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		fillTyped(t, st, "job", 50)
		o := &outage{began: time.Now(), until: 3 * time.Hour}
		g := start(t, worker.Config{Source: store.NewSource(st, "q"), Concurrency: 4, Policy: noJitter(t, 200),
			Breaker: counting, Handler: handler(o.handle)})
		for i := range 60 {
			if _, err := st.Enqueue(t.Context(), nixie.Message{Queue: "q", Type: "free", Key: fmt.Sprint("free", i)}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
		}
		if got := info(t, st); got.Succeeded != 60 {
			t.Errorf("%d of 60 of another type succeeded in two minutes", got.Succeeded)
		}
		time.Sleep(4 * time.Hour)
		g.end()
		if got := info(t, st); got.Succeeded != 110 || got.Dead != 0 {
			t.Errorf("%+v", got)
		}
		sound(t, st)
	})
}

// keeping is a source that keeps breakers.
type keeping struct {
	nixie.Source
	changes
	err    error         // of the first call
	closed chan struct{} // closed when it hears that a breaker has closed; may be nil
}

func (k *keeping) KeepBreaker(_ context.Context, change nixie.BreakerChange) error {
	k.observer().Breaker(change)
	if k.closed != nil && change.State == "closed" {
		close(k.closed)
		k.closed = nil
	}
	err := k.err
	k.err = nil
	return err
}

// The source is told of breakers, for operators, and that they have gone when the worker ends.
func TestTheSourceIsToldOfBreakers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		fillTyped(t, st, "job", 20)
		o := &outage{began: time.Now(), until: time.Hour}
		src, seen := &keeping{Source: store.NewSource(st, "q"), err: errBoom}, &troubles{}
		g := start(t, worker.Config{Source: src, Concurrency: 4, Policy: noJitter(t, 20), Breaker: counting,
			Handler: handler(o.handle), Observer: seen.observer()})
		time.Sleep(45 * time.Second)
		g.end()
		// What changes again before the source has heard of it is told once.
		if n := len(src.list); n < 3 || src.list[0] != "q/job/dependency open" || src.list[n-2] != "q/job/dependency open" ||
			src.list[n-1] != "q/job/dependency closed" {
			t.Errorf("told %q", src.list)
		}
		if n, _, _ := seen.count(); n != 1 {
			t.Errorf("%d troubles, one call failed", n)
		}
	})
}

// A goroutine that is slow to tell that a breaker was half-open does not undo that it has closed.
func TestTheSourceIsToldWhatIsSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		fillTyped(t, st, "job", 20)
		o := &outage{began: time.Now(), until: 5 * time.Second}
		closed := make(chan struct{})
		src := &keeping{Source: store.NewSource(st, "q"), closed: closed}
		slow := &nixie.Observer{Breaker: func(change nixie.BreakerChange) {
			if change.State == "half-open" {
				<-closed
			}
		}}
		rules := policy.BreakerRules{Failures: 3, Successes: 1, OpenFor: 10 * time.Second, HalfOpenMax: 2}
		g := start(t, worker.Config{Source: src, Concurrency: 2, Policy: noJitter(t, 20), Breaker: rules, Handler: handler(o.handle),
			Observer: slow})
		time.Sleep(time.Minute)
		g.end()
		first := slices.Index(src.list, "q/job/dependency closed")
		if first < 1 || slices.Contains(src.list[first:], "q/job/dependency half-open") {
			t.Errorf("told %q", src.list)
		}
	})
}

// A message with few deliveries left is not given back again and again: the worker receives nothing
// while the breaker is open.
func TestR10_BreakerUsesUpNoDeliveries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		fillTyped(t, st, "free", 1)
		fillTyped(t, st, "job", 20)
		o := &outage{began: time.Now(), until: 20 * time.Minute}
		p, err := policy.New(policy.Config{MaxAttempts: -1, MaxDeliveries: 20,
			Backoff: policy.Backoff{Base: 15 * time.Second, Factor: 1, Jitter: policy.JitterNone}})
		if err != nil {
			t.Fatal(err)
		}
		rules := policy.BreakerRules{Failures: 3, Successes: 1, OpenFor: time.Minute, HalfOpenMax: 1}
		g := start(t, worker.Config{Source: store.NewSource(st, "q"), Concurrency: 2, Policy: p, Breaker: rules,
			Handler: handler(o.handle)})
		time.Sleep(24 * time.Minute)
		g.end()
		if got := info(t, st); got.Succeeded != 21 || got.Dead != 0 {
			t.Errorf("%+v", got)
		}
	})
}

// Each reason has a breaker of its own. A success ends a row of failures, and a permanent failure
// does not count.
func TestR10_WhatOpensABreaker(t *testing.T) {
	dependency := nixie.WithReason(nixie.Transient(errBoom), nixie.ReasonDependency)
	timeout := nixie.WithReason(nixie.Transient(errBoom), nixie.ReasonTimeout)
	for _, c := range []struct {
		name     string
		outcomes []error // one after the other, then success
		want     []string
	}{
		{"in a row", []error{dependency, dependency, dependency}, []string{"q/job/dependency open"}},
		{"a success between", []error{dependency, dependency, nil, dependency, dependency}, nil},
		{"another reason between", []error{dependency, timeout, dependency, timeout, dependency}, []string{"q/job/dependency open"}},
		{"permanent", []error{nixie.Permanent(errBoom), nixie.Permanent(errBoom), nixie.Permanent(errBoom)}, nil},
		{"released", []error{nixie.Verdict(nixie.Release, errBoom), nixie.Verdict(nixie.Release, errBoom),
			nixie.Verdict(nixie.Release, errBoom)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New(memory.Options{})
				fillTyped(t, st, "job", len(c.outcomes))
				var n atomic.Int64
				seen := &changes{}
				g := start(t, worker.Config{
					Source: store.NewSource(st, "q"), Concurrency: 1, Policy: noJitter(t, 5),
					Breaker: policy.BreakerRules{Failures: 3, Successes: 1, OpenFor: time.Hour, HalfOpenMax: 1},
					Handler: handler(func(context.Context, *nixie.Delivery) error {
						if i := int(n.Add(1)); i <= len(c.outcomes) {
							return c.outcomes[i-1]
						}
						return nil
					}), Observer: seen.observer(),
				})
				time.Sleep(30 * time.Minute)
				g.end()
				if !slices.Equal(seen.list, c.want) {
					t.Errorf("told %q, want %q", seen.list, c.want)
				}
			})
		})
	}
}
