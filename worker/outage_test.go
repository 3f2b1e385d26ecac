package worker_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/brokertest"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// away is a dependency that is away at first. It counts what the messages go through.
type away struct {
	until time.Time

	mu        sync.Mutex
	runs      map[nixie.ID]int
	succeeded int
	letters   int
	goesOn    time.Time // first success
	done      time.Time // last success
	changed   chan struct{}
}

func newAway(d time.Duration) *away {
	return &away{until: time.Now().Add(d), runs: map[nixie.ID]int{}, changed: make(chan struct{}, 1)}
}

func (a *away) handle(ctx context.Context, d *nixie.Delivery) error {
	a.mu.Lock()
	a.runs[d.ID]++
	a.mu.Unlock()
	wait(ctx, 5*time.Millisecond)
	if time.Now().Before(a.until) {
		return nixie.WithReason(errBoom, nixie.ReasonDependency)
	}
	return nil
}

func (a *away) observer() *nixie.Observer {
	return &nixie.Observer{Settled: func(_ string, sts []nixie.Settlement, errs []error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		for i := range sts {
			switch {
			case errs[i] != nil:
			case sts[i].Verb == nixie.Complete:
				if a.succeeded++; a.goesOn.IsZero() {
					a.goesOn = time.Now()
				}
				a.done = time.Now()
			case sts[i].Burial != nil:
				a.letters++
			}
		}
		select {
		case a.changed <- struct{}{}:
		default:
		}
	}}
}

// ended waits until n messages have ended.
func (a *away) ended(t *testing.T, n int) {
	limit := time.After(12 * time.Hour)
	for {
		a.mu.Lock()
		over := a.succeeded+a.letters >= n
		a.mu.Unlock()
		if over {
			return
		}
		select {
		case <-a.changed:
		case <-limit:
			t.Fatalf("%d of %d ended in 12 h", a.succeeded+a.letters, n)
		}
	}
}

// most returns the highest number of runs of a message.
func (a *away) most() (runs int) {
	for _, n := range a.runs {
		runs = max(runs, n)
	}
	return runs
}

const outageMessages = 200

// inStore fills the store in memory, in inHand the source and a broker that keeps records in hand
// (a log, as Kafka) or takes them back (a mailbox, as Redis).
func inStore(t *testing.T) nixie.Source {
	st := memory.New(memory.Options{})
	fillTyped(t, st, "job", outageMessages)
	return store.NewSource(st, "q")
}

func inBroker(t *testing.T, f brokertest.Fixture) nixie.Source {
	t.Helper()
	for i := range outageMessages {
		f.Produce(t, broker.Publication{Channel: f.Source(), Value: []byte(fmt.Sprint(i))})
	}
	src, err := broker.New(broker.Config{Driver: f.Join(t), Letters: broker.DefaultLetters})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

var outageSources = []struct {
	name string
	open func(*testing.T) nixie.Source
}{
	{"memory", inStore},
	{"log", func(t *testing.T) nixie.Source { return inBroker(t, brokertest.NewLog()) }},
	{"mailbox", func(t *testing.T) nixie.Source { return inBroker(t, brokertest.NewMailbox()) }},
	{"timed", func(t *testing.T) nixie.Source { return inBroker(t, brokertest.NewTimed()) }},
	{"counting", func(t *testing.T) nixie.Source { return inBroker(t, brokertest.NewCounting()) }},
}

// What is away for a while kills nothing, and the work goes on soon after it is back. The rows are
// the worker as programs have it, and with the settings of nixie run.
func TestOutage(t *testing.T) {
	outages := []time.Duration{time.Second, 20 * time.Second, 5 * time.Minute, time.Hour}
	t.Logf("%-8s %-9s %5s %9s %8s %9s %9s %9s", "source", "worker", "hands", "outage", "letters", "most runs", "goes on", "all done")
	for _, src := range outageSources {
		for _, as := range []string{"library", "run"} {
			for _, hands := range []int{1, 4} {
				for _, outage := range outages {
					t.Run(fmt.Sprint(src.name, "/", as, "/", hands, "/", outage), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							a := newAway(outage)
							g := start(t, outageWorker(src.open(t), as, hands, a, nil))
							a.ended(t, outageMessages)
							g.end()
							t.Logf("%-8s %-9s %5d %9s %8d %9d %9s %9s", src.name, as, hands, outage, a.letters, a.most(),
								a.goesOn.Sub(a.until).Round(time.Millisecond), a.done.Sub(a.until).Round(time.Millisecond))
							longest := map[string]time.Duration{"library": 5 * time.Minute, "run": 15 * time.Second}[as]
							if late := a.goesOn.Sub(a.until); a.letters > 0 || late > min(outage+4*time.Second, longest+time.Second) {
								t.Errorf("%d letters, goes on after %s", a.letters, late)
							}
						})
					})
				}
			}
		}
	}
}

func outageWorker(src nixie.Source, as string, hands int, a *away, p *policy.Policy) worker.Config {
	c := worker.Config{
		Source: src, Concurrency: hands, Policy: p, Handler: handler(a.handle), Observer: a.observer(),
		Logger: slog.New(slog.DiscardHandler),
	}
	if as == "run" {
		c.Awaited, c.SettleEach, c.Prefetch = true, true, 2*hands
	}
	return c
}

// With max_attempts 1 only those become letters that opened the breaker, were in hand then, or were
// tried.
func TestOutageWithOneAttempt(t *testing.T) {
	for _, src := range outageSources {
		for _, outage := range []time.Duration{20 * time.Second, time.Hour} {
			t.Run(fmt.Sprint(src.name, "/", outage), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const hands = 4
					p, err := policy.New(policy.Config{MaxAttempts: 1})
					if err != nil {
						t.Fatal(err)
					}
					a, tries := newAway(outage), 0
					c := outageWorker(src.open(t), "library", hands, a, p)
					c.Observer = nixie.Tee(c.Observer, &nixie.Observer{Breaker: func(change nixie.BreakerChange) {
						if change.State == "half-open" {
							tries++
						}
					}})
					g := start(t, c)
					a.ended(t, outageMessages)
					g.end()
					if most := 10 + hands + tries; a.letters > most || a.letters < 10 || a.most() > 1 {
						t.Errorf("%d letters of %d at most, %d runs of one message", a.letters, most, a.most())
					}
				})
			})
		}
	}
}

// With a breaker of no profile, or none, nothing is held back, and what fails is dead as before.
func TestOutageWithoutABreaker(t *testing.T) {
	for name, c := range map[string]worker.Config{
		"none":    {Breaker: policy.BreakerRules{Failures: -1}, Policy: noJitter(t, 3)},
		"profile": {Policy: ofProfile(t, "kafka-dlc")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAway(20 * time.Second)
				c.Source, c.Handler, c.Observer, c.Logger = inStore(t), handler(a.handle), a.observer(), slog.New(slog.DiscardHandler)
				c.Concurrency = 4
				g := start(t, c)
				a.ended(t, outageMessages)
				g.end()
				if a.letters != outageMessages {
					t.Errorf("%d letters", a.letters)
				}
			})
		})
	}
}

func ofProfile(t *testing.T, name string) *policy.Policy {
	t.Helper()
	p, err := policy.New(policy.Config{Profile: name})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
