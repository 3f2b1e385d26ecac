package worker_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// looks counts the looks for cancels.
type looks struct {
	*store.Source
	calls, most atomic.Int64
}

func (l *looks) Canceled(ctx context.Context, ids []nixie.ID) (map[nixie.ID]lease.Cancel, error) {
	l.calls.Add(1)
	l.most.Store(max(l.most.Load(), int64(len(ids))))
	return l.Source.Canceled(ctx, ids)
}

// A handler is told within about a second that its message was canceled, by whom and why. The log
// says that, and not that the message goes to others or that an outcome is late. Others go on.
func TestCancelIsSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		var ids []nixie.ID
		for _, key := range []string{"canceled", "other"} {
			r, err := st.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: key})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, r[0].ID)
		}
		var took time.Duration
		var cause error
		var lost bool
		log := &lines{}
		g := start(t, worker.Config{Source: store.NewSource(st, "q"), Concurrency: 2, Logger: log.logger(), Queue: "q",
			Handler: handler(func(ctx context.Context, d *nixie.Delivery) error {
				switch begun := time.Now(); d.Key {
				case "canceled":
					<-ctx.Done()
					took, cause = time.Since(begun), context.Cause(ctx)
					select {
					case <-d.Lost():
						lost = true
					default:
					}
					return nixie.Permanent(errBoom) // of no interest any more
				case "other":
					select {
					case <-ctx.Done():
						t.Error("the other handler was ended")
					case <-time.After(8 * time.Second):
					}
				}
				return nil
			})})
		time.Sleep(3 * time.Second)
		change := store.Change{Verb: store.Cancel, Actor: "ann", Reason: "not needed"}
		if err := errors.Join(st.Amend(t.Context(), ids[:1], change)...); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		g.end()
		if took < 3*time.Second || took > 4250*time.Millisecond {
			t.Errorf("the handler was told after %s", took)
		}
		var canceled *worker.CanceledError
		if !errors.As(cause, &canceled) || canceled.By != "ann" || !errors.Is(cause, worker.ErrLeaseLost) || !lost {
			t.Errorf("cause is %v, lost %v", cause, lost)
		}
		text := log.text()
		if !strings.Contains(text, `msg="canceled by ann: not needed" queue=q state=cancel id=`+ids[0].String()) ||
			strings.Contains(text, "others get") || strings.Contains(text, "too late") {
			t.Error(text)
		}
		records, _, err := st.Messages(t.Context(), nixie.Filter{Keys: []string{"other"}}, store.Page{})
		if err != nil || len(records) != 1 || records[0].State != nixie.Succeeded {
			t.Errorf("%v, %v", records, err)
		}
	})
}

// canceling is a source whose leases were all lost when they are renewed, because of cancels.
type canceling struct{ *script }

func (c canceling) Canceled(_ context.Context, ids []nixie.ID) (map[nixie.ID]lease.Cancel, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[nixie.ID]lease.Cancel{}
	for _, id := range ids {
		if c.extends > 0 {
			found[id] = lease.Cancel{By: "ann"}
		}
	}
	return found, nil
}

// A renewal that finds leases lost says of which the messages were canceled. Those that wait in
// hand are not run.
func TestRenewalKnowsCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &script{feed: [][]*nixie.Delivery{{delivery("runs"), delivery("waits")}}}
		src.extend = func(_ context.Context, ds []*nixie.Delivery) []error {
			return each(len(ds), coded(nixie.CodeLeaseLost))
		}
		src.settle = func(_ context.Context, sts []nixie.Settlement) []error {
			return each(len(sts), coded(nixie.CodeLeaseLost))
		}
		log := &lines{}
		g := start(t, worker.Config{Source: canceling{src}, Concurrency: 1, Logger: log.logger(), Queue: "q",
			Handler: handler(func(ctx context.Context, d *nixie.Delivery) error {
				if d.Key == "waits" {
					t.Error("a message that was canceled ran")
				}
				<-ctx.Done()
				return ctx.Err()
			})})
		time.Sleep(time.Minute)
		g.end()
		line := `level=ERROR msg="canceled by ann" queue=q state=cancel id=`
		log.expect(t, line, line)
	})
}

// While handlers run, a worker looks once a second for all of them in one call. An idle one does
// not look.
func TestLooksForCancelsAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		for range 5 {
			if _, err := st.Enqueue(t.Context(), nixie.Message{Queue: "q"}); err != nil {
				t.Fatal(err)
			}
		}
		src := &looks{Source: store.NewSource(st, "q")}
		g := start(t, worker.Config{Source: src, Concurrency: 10, Handler: handler(func(ctx context.Context, _ *nixie.Delivery) error {
			wait(ctx, 10*time.Minute)
			return nil
		})})
		time.Sleep(11 * time.Minute)
		busy := src.calls.Load()
		time.Sleep(time.Hour)
		idle := src.calls.Load() - busy
		g.end()
		if busy < 400 || busy > 602 || src.most.Load() != 5 || idle != 0 {
			t.Errorf("%d looks in 10 minutes, for at most %d handlers, and %d in an idle hour", busy, src.most.Load(), idle)
		}
	})
}
