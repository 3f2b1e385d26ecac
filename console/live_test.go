package console_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// counted counts the questions to a store.
type counted struct {
	*memory.Store
	queues, counts atomic.Int64
	wait           func() // how long an answer takes; nil is no time
}

func (s *counted) Queues(ctx context.Context, q store.QueueQuery) ([]store.QueueInfo, error) {
	s.queues.Add(1)
	if s.wait != nil {
		s.wait()
	}
	return s.Store.Queues(ctx, q)
}

func (s *counted) Count(ctx context.Context, f nixie.Filter, of store.Counting) ([][]store.Group, store.Coverage, error) {
	s.counts.Add(1)
	return s.Store.Count(ctx, f, of)
}

// watching is a console whose clock a test moves.
type watching struct {
	*shop
	store *counted
	now   atomic.Int64 // nanoseconds after noon
}

func watch(t *testing.T) *watching {
	t.Helper()
	w := &watching{}
	clock := func() time.Time { return noon.Add(time.Duration(w.now.Load())) }
	w.store = &counted{Store: memory.New(memory.Options{Clock: clock})}
	o, err := office.New(office.Config{Store: w.store, Actor: "ann", Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	w.shop = &shop{t: t, store: w.store.Store, office: o}
	w.server = httptest.NewServer(console.Handler(o, console.Options{Clock: clock, Zone: time.UTC}))
	t.Cleanup(w.server.Close)
	w.die(1)
	return w
}

func (w *watching) die(n int) {
	w.t.Helper()
	l := letter(n, "orders", "timeout: slow", "slow", 0)
	if _, errs := w.office.Adopt(w.t.Context(), []nixie.Letter{l}, "the test"); errs[0] != nil {
		w.t.Fatal(errs[0])
	}
}

// look asks for a page with a version, and returns the status and the newest version.
func (w *watching) look(path, version string) (int, string) {
	answer, _ := w.ask(http.MethodGet, path, header("Nixie-Live", version), nil)
	return answer.StatusCode, answer.Header.Get("Nixie-Live")
}

func TestManyWhoWatchAskTheStoreOnce(t *testing.T) {
	t.Parallel()
	w := watch(t)
	_, version := w.look("/", "none")
	w.die(2)
	w.now.Add(int64(3 * time.Second))
	counts := w.store.counts.Load()
	w.page(http.StatusOK, "/")
	alone := w.store.counts.Load() - counts // what one page costs
	if alone == 0 {
		t.Fatal("a page asks for no counts")
	}
	counts = w.store.counts.Load()
	queues := w.store.queues.Load()
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if status, newest := w.look("/", version); status != http.StatusOK || newest == version {
				t.Errorf("status %d, version %s after %s", status, newest, version)
			}
		})
	}
	all.Wait()
	if got := w.store.counts.Load() - counts; got != alone {
		t.Errorf("10 who watch ask for counts %d times, one page does %d times", got, alone)
	}
	if got := w.store.queues.Load() - queues; got > 4 { // one look, and one page
		t.Errorf("10 who watch ask for queues %d times", got)
	}
}

// TestASlowStoreIsAskedLessOften watches a store that takes 100 ms for each answer about queues: of
// them a look needs one, and a page of queues one.
func TestASlowStoreIsAskedLessOften(t *testing.T) {
	t.Parallel()
	w := watch(t)
	w.store.wait = func() { w.now.Add(int64(100 * time.Millisecond)) }
	_, version := w.look("/queues", "none")
	w.die(2)
	queues := w.store.queues.Load()
	for range 5 {
		w.now.Add(int64(5900 * time.Millisecond))
		if status, _ := w.look("/queues", version); status != http.StatusNoContent || w.store.queues.Load() != queues {
			t.Errorf("status %d, and the store was asked %d times", status, w.store.queues.Load()-queues)
		}
	}
	w.now.Add(int64(600 * time.Millisecond))
	if status, newest := w.look("/queues", version); status != http.StatusOK || newest == version {
		t.Errorf("status %d, version %s after %s", status, newest, version)
	}
}

func TestNothingIsSentWhileNothingChanges(t *testing.T) {
	t.Parallel()
	w := watch(t)
	_, version := w.look("/letters", "none")
	for range 5 {
		w.now.Add(int64(3 * time.Second))
		counts := w.store.counts.Load()
		if status, newest := w.look("/letters", version); status != http.StatusNoContent || newest != version {
			t.Errorf("status %d, version %s after %s", status, newest, version)
		}
		if got := w.store.counts.Load() - counts; got > 0 {
			t.Errorf("the store was asked for %d counts", got)
		}
	}
	w.now.Add(int64(time.Minute)) // pages have ages
	if status, _ := w.look("/letters", version); status != http.StatusOK {
		t.Errorf("status %d after a minute", status)
	}
}

func TestWatchingEndsWithTheStore(t *testing.T) {
	t.Parallel()
	w := watch(t)
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	if status, version := w.look("/", "none"); status != http.StatusServiceUnavailable || version != "" {
		t.Errorf("status %d, version %q", status, version)
	}
	if status, _ := w.look("/audit", "none"); status != http.StatusServiceUnavailable { // a page that is not live answers as always
		t.Errorf("status %d of a page that is not live", status)
	}
}
