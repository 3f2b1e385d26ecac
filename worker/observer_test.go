package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/worker"
)

// The observer hears when the source goes and comes, which leases are renewed and lost, and how
// long each handler took.
func TestWhatTheObserverHears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []string
		tell := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			if s := fmt.Sprintf(format, args...); !slices.Contains(told, s) {
				told = append(told, s)
			}
		}
		src := &script{}
		calls := 0
		src.receive = func(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
			switch calls++; calls {
			case 1, 2, 5:
				return nil, errBoom
			case 3:
				return []*nixie.Delivery{delivery("slow"), delivery("failing"), delivery("taken")}, nil
			}
			wait(ctx, want.Wait)
			return nil, nil
		}
		src.extend = func(_ context.Context, ds []*nixie.Delivery) []error {
			errs := make([]error, len(ds))
			for i, d := range ds {
				if d.Key == "taken" {
					errs[i] = coded(nixie.CodeLeaseLost)
				}
			}
			return errs
		}
		g := start(t, worker.Config{Source: src, Queue: "q", Concurrency: 3,
			Handler: handler(func(ctx context.Context, d *nixie.Delivery) error {
				switch d.Key {
				case "slow":
					time.Sleep(25 * time.Second)
					return nil
				case "failing":
					time.Sleep(3 * time.Second)
					return errors.New("no")
				}
				<-ctx.Done()
				return context.Cause(ctx)
			}),
			Observer: &nixie.Observer{
				Connected: func(q string, up bool) { tell("%s is up: %t", q, up) },
				Extended: func(q string, ds []*nixie.Delivery, errs []error) {
					for i, d := range ds {
						tell("%s extended %s: %s", q, d.Key, nixie.CodeOf(errs[i]))
					}
				},
				Lost: func(d *nixie.Delivery) { tell("lost %s, body %q", d.Key, d.Body) },
				Settled: func(q string, sts []nixie.Settlement, _ []error) {
					for _, st := range sts {
						if st.Delivery.Key != "taken" {
							tell("%s %s after %s", st.Verb, st.Delivery.Key, st.Took)
						}
					}
				},
			}})
		time.Sleep(time.Minute)
		g.end()
		want := []string{"q is up: false", "q is up: true", "retry failing after 3s", "q extended slow: ", "q extended taken: lease-lost",
			"lost taken, body \"\"", "complete slow after 25s"}
		slices.Sort(want)
		slices.Sort(told)
		if !slices.Equal(told, want) {
			t.Errorf("told %q\nwant %q", told, want)
		}
	})
}
