package worker_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/worker"
)

// A handler completes its message in a transaction of its own. The message has succeeded even if
// the handler returns an error, because the transaction ended the lease. After a rollback the
// outcome of the handler counts.
func TestCompletedByItsHandler(t *testing.T) {
	for _, c := range []struct {
		name     string
		commit   bool
		err      error
		verb     nixie.Verb
		troubles int
	}{
		{"commit and nil", true, nil, nixie.Complete, 0},
		{"commit and error", true, errBoom, nixie.Complete, 1},
		{"commit and asked verb", true, nixie.Verdict(nixie.Bury, errBoom), nixie.Complete, 1},
		{"commit and release", true, nixie.Verdict(nixie.Release, errBoom), nixie.Complete, 0},
		{"rollback and nil", false, nil, nixie.Complete, 0},
		{"rollback and error", false, errBoom, nixie.Retry, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src := &script{feed: [][]*nixie.Delivery{{delivery("d")}}}
				src.settle = func(_ context.Context, sts []nixie.Settlement) []error {
					if c.commit {
						return each(len(sts), coded(nixie.CodeLeaseLost))
					}
					return make([]error, len(sts))
				}
				seen := &troubles{}
				var told []nixie.Settlement
				observer := nixie.Tee(seen.observer(),
					&nixie.Observer{Settled: func(_ string, sts []nixie.Settlement, _ []error) { told = append(told, sts...) }})
				g := start(t, worker.Config{Source: src, Observer: observer,
					Handler: handler(func(_ context.Context, d *nixie.Delivery) error {
						if c.commit {
							lease.MarkCompleted(d)
						}
						return c.err
					})})
				time.Sleep(time.Second)
				g.end()
				if len(told) != 1 || told[0].Verb != c.verb || told[0].Delivery.Key != "d" {
					t.Errorf("observer saw %+v", told)
				}
				troubles, _, lost := seen.count()
				if troubles != c.troubles || lost != 0 {
					t.Errorf("%d troubles %v, %d lost", troubles, seen.errs, lost)
				}
				for _, err := range seen.errs {
					if nixie.CodeOf(err) != nixie.CodeConflict || !strings.Contains(err.Error(), "stays succeeded") ||
						!strings.Contains(err.Error(), "boom") {
						t.Errorf("told %v", err)
					}
				}
			})
		})
	}
}

// The worker does not renew the lease of a message that its handler completed, and renews the
// others.
func TestCompletedIsNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &script{feed: [][]*nixie.Delivery{{delivery("completed"), delivery("other")}}}
		renewed := map[string]int{}
		src.extend = func(_ context.Context, ds []*nixie.Delivery) []error {
			for _, d := range ds {
				renewed[d.Key]++
			}
			return make([]error, len(ds))
		}
		g := start(t, worker.Config{Source: src, Concurrency: 2, Lease: 3 * time.Second,
			Handler: handler(func(ctx context.Context, d *nixie.Delivery) error {
				if d.Key == "completed" {
					lease.MarkCompleted(d)
				}
				wait(ctx, 10*time.Second)
				return nil
			})})
		time.Sleep(20 * time.Second)
		g.end()
		if renewed["completed"] > 0 || renewed["other"] < 5 {
			t.Errorf("renewed were %v", renewed)
		}
	})
}

// A handler that goes on after it completed its message keeps its context. The context of one that
// did not complete its message ends, as the lease is lost.
func TestCompletedKeepsItsContext(t *testing.T) {
	for _, completes := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			src := &script{feed: [][]*nixie.Delivery{{delivery("d")}}}
			src.extend = func(_ context.Context, ds []*nixie.Delivery) []error {
				return each(len(ds), coded(nixie.CodeLeaseLost))
			}
			src.settle = func(_ context.Context, sts []nixie.Settlement) []error {
				return each(len(sts), coded(nixie.CodeLeaseLost))
			}
			seen := &troubles{}
			g := start(t, worker.Config{Source: src, Lease: 3 * time.Second, Observer: seen.observer(),
				Handler: handler(func(ctx context.Context, d *nixie.Delivery) error {
					if completes {
						lease.MarkCompleted(d)
					}
					wait(ctx, 10*time.Second)
					if (ctx.Err() == nil) != completes {
						t.Errorf("completed %t: context is %v", completes, context.Cause(ctx))
					}
					return ctx.Err()
				})})
			time.Sleep(20 * time.Second)
			g.end()
			if _, _, lost := seen.count(); (lost == 0) != completes {
				t.Errorf("completed %t: %d leases lost", completes, lost)
			}
		})
	}
}

// A desk does the same.
func TestDeskOfCompleted(t *testing.T) {
	d := delivery("d")
	lease.MarkCompleted(d)
	src := &script{settle: func(_ context.Context, sts []nixie.Settlement) []error {
		return each(len(sts), coded(nixie.CodeLeaseLost))
	}}
	clock := &hands{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	desk := newDesk(t, src, clock, &troubles{})
	for _, err := range []error{nil, errBoom} {
		if st, err := desk.Done(t.Context(), d, err, clock.Now()); st.Verb != nixie.Complete || err != nil {
			t.Errorf("%s, %v", st.Verb, err)
		}
	}
}
