package worker_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// ends notes when each message ended, by its key.
type ends struct {
	mu   sync.Mutex
	good []time.Duration // successes
	dead []time.Duration // letters
	runs map[string]int
}

// lead runs a worker on the messages of a store until all have ended. Those fail that fail says.
func lead(t *testing.T, st *memory.Store, breaker policy.BreakerRules, n int, fail func(*nixie.Delivery) error) *ends {
	t.Helper()
	p, err := policy.New(policy.Config{Backoff: policy.Backoff{Jitter: policy.JitterNone}})
	if err != nil {
		t.Fatal(err)
	}
	l, began, over := &ends{runs: map[string]int{}}, time.Now(), make(chan struct{})
	g := start(t, worker.Config{
		Source: store.NewSource(st, "q"), Concurrency: 4, Policy: p, Breaker: breaker, Logger: slog.New(slog.DiscardHandler),
		Handler: handler(func(ctx context.Context, d *nixie.Delivery) error {
			l.mu.Lock()
			l.runs[d.Key]++
			l.mu.Unlock()
			wait(ctx, time.Millisecond)
			return fail(d)
		}),
		Observer: &nixie.Observer{
			Settled: func(_ string, sts []nixie.Settlement, _ []error) {
				l.mu.Lock()
				defer l.mu.Unlock()
				for i := range sts {
					switch {
					case sts[i].Verb == nixie.Complete:
						l.good = append(l.good, time.Since(began))
					case sts[i].Burial != nil:
						l.dead = append(l.dead, time.Since(began))
					default:
						continue
					}
					if len(l.good)+len(l.dead) == n {
						close(over)
					}
				}
			},
			Breaker: func(change nixie.BreakerChange) {
				if !breaker.Healing && breaker.Failures == 0 {
					t.Errorf("a breaker is %s: %s", change.State, change.Text)
				}
			},
		},
	})
	select {
	case <-over:
	case <-time.After(24 * time.Hour):
		t.Error("not all messages ended in a day")
	}
	g.end()
	return l
}

// within5 refuses moments that are more than 5 % later than those without a breaker.
func within5(t *testing.T, what string, today, now []time.Duration) {
	t.Helper()
	if len(today) != len(now) {
		t.Errorf("%s: %d, and %d without a breaker", what, len(now), len(today))
		return
	}
	slices.Sort(today)
	slices.Sort(now)
	for i := range now {
		if limit := today[i] + today[i]/20 + time.Millisecond; now[i] > limit {
			t.Errorf("%s %d ends after %s, and after %s without a breaker", what, i, now[i], today[i])
			return
		}
	}
	if len(now) > 0 {
		t.Logf("%4d %-8s last after %8s, without a breaker after %8s", len(now), what, now[len(now)-1], today[len(today)-1])
	}
}

func fillMixed(t *testing.T, n int, key func(i int) string) *memory.Store {
	t.Helper()
	st := memory.New(memory.Options{})
	for i := range n {
		if _, err := st.Enqueue(t.Context(), nixie.Message{Queue: "q", Type: "job", Key: key(i)}); err != nil {
			t.Fatal(err)
		}
	}
	return st
}

// Bad messages do not open the default breaker: they become letters as soon as without it, and no
// good one waits for them.
func TestHarmless(t *testing.T) {
	bad := func(d *nixie.Delivery) error {
		if strings.HasPrefix(d.Key, "bad") {
			return errBoom
		}
		return nil
	}
	late := func(d *nixie.Delivery) error {
		if strings.HasPrefix(d.Key, "bad") {
			return context.DeadlineExceeded
		}
		return nil
	}
	for _, c := range []struct {
		name string
		n    int
		key  func(i int) string
		fail func(*nixie.Delivery) error
		dead int
	}{
		{"500 bad of 1000", 1000, func(i int) string { return fmt.Sprint([]string{"good", "bad"}[i%2], i) }, bad, 500},
		{"500 bad before 500 good", 1000, func(i int) string { return fmt.Sprint([]string{"bad", "good"}[i/500], i) }, bad, 500},
		{"all bad", 300, func(i int) string { return fmt.Sprint("bad", i) }, bad, 300},
		{"one late of 1000", 1000, func(i int) string {
			if i == 0 {
				return "bad"
			}
			return fmt.Sprint("good", i)
		}, late, 1},
		{"50 late of 1000", 1000, func(i int) string {
			if i%20 == 0 {
				return fmt.Sprint("bad", i)
			}
			return fmt.Sprint("good", i)
		}, late, 50},
		{"three late alone", 3, func(i int) string { return fmt.Sprint("bad", i) }, late, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				today := lead(t, fillMixed(t, c.n, c.key), policy.BreakerRules{Failures: -1}, c.n, c.fail)
				now := lead(t, fillMixed(t, c.n, c.key), policy.BreakerRules{}, c.n, c.fail)
				within5(t, "letters", today.dead, now.dead)
				within5(t, "good", today.good, now.good)
				if len(now.dead) != c.dead {
					t.Errorf("%d letters, want %d", len(now.dead), c.dead)
				}
				for key, n := range now.runs {
					if n > 13 {
						t.Errorf("%s ran %d times", key, n)
					}
				}
			})
		})
	}
}

// A head of a strict stream that is always late blocks its own stream and nothing else.
func TestHarmlessHeadOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		if err := store.Configure(t.Context(), st, "q", nixie.QueueSettings{Order: nixie.OrderStrict}, "ann", ""); err != nil {
			t.Fatal(err)
		}
		const streams, length = 50, 10
		for i := range length {
			for s := range streams {
				key := fmt.Sprint("good", s, "-", i)
				if s == 0 && i == 0 {
					key = "bad"
				}
				m := nixie.Message{Queue: "q", Type: "job", Key: key, Stream: fmt.Sprint("stream", s)}
				if _, err := st.Enqueue(t.Context(), m); err != nil {
					t.Fatal(err)
				}
			}
		}
		l := lead(t, st, policy.BreakerRules{}, 1+(streams-1)*length, func(d *nixie.Delivery) error {
			if d.Key == "bad" {
				return context.DeadlineExceeded
			}
			return nil
		})
		if last := slices.Max(l.good); len(l.dead) != 1 || len(l.good) != (streams-1)*length || last > 5*time.Second {
			t.Errorf("%d letters, %d good, the last after %s", len(l.dead), len(l.good), last)
		}
		if n := l.runs["bad"]; n > 13 || l.runs["good0-1"] > 0 {
			t.Errorf("the head ran %d times, the one behind it %d times", n, l.runs["good0-1"])
		}
	})
}
