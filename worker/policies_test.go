package worker_test

import (
	"context"
	"strings"
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

// looking is a source that counts the calls for policies, and fails when the test says so.
type looking struct {
	*store.Source
	looks atomic.Int64
	away  atomic.Bool
}

func (l *looking) Policies(ctx context.Context) (map[string]string, error) {
	l.looks.Add(1)
	if l.away.Load() {
		return nil, coded(nixie.CodeUnavailable)
	}
	return l.Source.Policies(ctx)
}

func rule(t *testing.T, st *memory.Store, queue, text string) {
	t.Helper()
	if _, err := st.Adjust(t.Context(), queue, "ann", "", func(q *nixie.QueueSettings) error { q.Policy = text; return nil }); err != nil {
		t.Fatal(err)
	}
}

// attemptsOf enqueues a message and returns the number of attempts after which it died.
func attemptsOf(t *testing.T, st *memory.Store, queue, key string) int {
	t.Helper()
	if _, err := st.Enqueue(t.Context(), nixie.Message{Queue: queue, Key: key}); err != nil {
		t.Fatal(err)
	}
	wait(t.Context(), time.Second)
	m := message(t, st, key)
	if m.State != nixie.Dead {
		t.Errorf("%s is %s after %d attempts", key, m.State, m.Attempts)
	}
	return m.Attempts
}

func fail(context.Context, *nixie.Delivery) error { return errBoom }

// Each queue has its own policy for its workers. A change counts for messages that are received 5 s
// later, and a worker does not ask while nothing comes.
func TestPolicyOfTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		rule(t, st, "a", "max-attempts=2\nbackoff=0")
		rule(t, st, "b", "max-attempts=1")
		src := &looking{Source: store.NewSource(st, "a", "b", "c")}
		g := start(t, worker.Config{Source: src, Handler: handler(fail)})
		if n := attemptsOf(t, st, "a", "a1"); n != 2 {
			t.Errorf("%d attempts in queue a, want 2", n)
		}
		if n := attemptsOf(t, st, "b", "b1"); n != 1 {
			t.Errorf("%d attempts in queue b, want 1", n)
		}
		before := src.looks.Load()
		time.Sleep(time.Hour)
		if n := src.looks.Load(); n != before || n > 2 {
			t.Errorf("asked %d times, and %d times while nothing came", before, n-before)
		}
		rule(t, st, "a", "max-attempts=4\nbackoff=0")
		if n := attemptsOf(t, st, "a", "a2"); n != 4 {
			t.Errorf("%d attempts after a change, want 4", n)
		}
		rule(t, st, "a", "max-attempts=3\nbackoff=0")
		time.Sleep(5 * time.Second)
		if n := attemptsOf(t, st, "a", "a3"); n != 3 {
			t.Errorf("%d attempts 5 s after a change, want 3", n)
		}
		rule(t, st, "a", "")
		time.Sleep(5 * time.Second)
		if _, err := st.Enqueue(t.Context(), nixie.Message{Queue: "a", Key: "a4"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if m := message(t, st, "a4"); m.Attempts != policy.DefaultMaxAttempts {
			t.Errorf("%d attempts without a policy, want the default", m.Attempts)
		}
		g.end()
	})
}

// A worker with a policy of its own uses that and never asks the source.
func TestPolicyOfTheWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		rule(t, st, "a", "max-attempts=2")
		own, err := policy.New(policy.Config{MaxAttempts: 1})
		if err != nil {
			t.Fatal(err)
		}
		src := &looking{Source: store.NewSource(st, "a")}
		g := start(t, worker.Config{Source: src, Policy: own, Handler: handler(fail)})
		if n := attemptsOf(t, st, "a", "a1"); n != 1 || src.looks.Load() != 0 {
			t.Errorf("%d attempts, want 1; asked %d times", n, src.looks.Load())
		}
		g.end()
	})
}

// Nothing is received before the policy is known. After that the worker uses the last one when it
// cannot look up or read a new one.
func TestPolicyThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		rule(t, st, "a", "max-attempts=1")
		src := &looking{Source: store.NewSource(st, "a")}
		src.away.Store(true)
		log := &lines{}
		g := start(t, worker.Config{Source: src, Handler: handler(fail), Logger: log.logger()})
		if _, err := st.Enqueue(t.Context(), nixie.Message{Queue: "a", Key: "a1"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if m := message(t, st, "a1"); m.State != nixie.Queued || m.Deliveries != 0 {
			t.Errorf("%s after %d deliveries under an unknown policy", m.State, m.Deliveries)
		}
		src.away.Store(false)
		time.Sleep(10 * time.Second)
		src.away.Store(true)
		if n := attemptsOf(t, st, "a", "a2"); n != 1 {
			t.Errorf("%d attempts while the policy is away, want 1", n)
		}
		src.away.Store(false)
		rule(t, st, "a", "max-attempts=many")
		time.Sleep(5 * time.Second)
		if n := attemptsOf(t, st, "a", "a3"); n != 1 {
			t.Errorf("%d attempts with a policy that cannot be read, want 1", n)
		}
		g.end()
		if text := log.text(); strings.Count(text, "state=policy") != 2 ||
			!strings.Contains(text, `code=invalid error="policy of queue a: max-attempts is`) {
			t.Error(text)
		}
	})
}

// A desk uses the policy of the queue too.
func TestPolicyOfTheQueueAtADesk(t *testing.T) {
	st := memory.New(memory.Options{})
	fill(t, st, "it")
	rule(t, st, "q", "max-attempts=1\non-exhausted=hold")
	desk, err := worker.NewDesk(worker.Config{Source: store.NewSource(st, "q")})
	if err != nil {
		t.Fatal(err)
	}
	got, err := desk.Receive(t.Context(), nixie.Want{Max: 1})
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	if sent, err := desk.Done(t.Context(), got[0], errBoom, time.Now()); err != nil || sent.Verb != nixie.Hold {
		t.Errorf("%s, %v", sent.Verb, err)
	}
}

// The policy of the queue limits the claims that a breaker may use up. When it opens, the worker
// gives back the deliveries in hand.
func TestPolicyOfTheQueueUnderABreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		rule(t, st, "q", "max-attempts=none\nmax-deliveries=20\nbackoff=0")
		fill(t, st, "a", "b", "c", "d", "e", "f", "g", "h")
		released := 0
		g := start(t, worker.Config{
			Source: store.NewSource(st, "q"), Handler: handler(fail), Concurrency: 1,
			Breaker: policy.BreakerRules{Failures: 2, Successes: 1, OpenFor: time.Minute, HalfOpenMax: 1},
			Observer: &nixie.Observer{Settled: func(_ string, sts []nixie.Settlement, _ []error) {
				for i := range sts {
					if sts[i].Verb == nixie.Release {
						released++
					}
				}
			}},
		})
		time.Sleep(10 * time.Minute)
		g.end()
		if m := message(t, st, "h"); released == 0 || m.State != nixie.Queued || m.Deliveries >= 20 {
			t.Errorf("%d given back; h is %s after %d deliveries", released, m.State, m.Deliveries)
		}
	})
}
