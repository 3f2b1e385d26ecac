package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/worker"
)

// notebook is a progress log that a test reads.
type notebook struct {
	refuse func(lease.Progress) error

	mu       sync.Mutex
	progress map[string][]lease.Progress
}

func (n *notebook) LogProgress(progress lease.Progress, ds ...*nixie.Delivery) error {
	if n.refuse != nil {
		if err := n.refuse(progress); err != nil {
			return err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.progress == nil {
		n.progress = map[string][]lease.Progress{}
	}
	for _, d := range ds {
		n.progress[d.Key] = append(n.progress[d.Key], progress)
	}
	return nil
}

func (n *notebook) of(key string) []lease.Progress {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.progress[key])
}

var allProgress = []lease.Progress{lease.Begun, lease.Succeeded}

// A crash makes at most as many deliveries run twice as there are goroutines: all others that were
// begun are logged or settled. Logged successes are settled together.
func TestRecordedSuccessesAreSettledTogether(t *testing.T) {
	refused := errors.New("disk full")
	for _, c := range []struct {
		name   string
		refuse error
		calls  int64
	}{{"recorded", nil, 40}, {"refused", refused, 1000}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var open, most, calls atomic.Int64
				notes := &notebook{}
				notes.refuse = func(progress lease.Progress) error {
					if progress == lease.Succeeded && c.refuse == nil {
						open.Add(-1)
					}
					if progress == lease.Succeeded {
						return c.refuse
					}
					return nil
				}
				src := &script{feed: [][]*nixie.Delivery{deliveries(1000)}}
				src.settle = func(_ context.Context, sts []nixie.Settlement) []error {
					calls.Add(1)
					time.Sleep(time.Millisecond)
					if c.refuse != nil {
						open.Add(-int64(len(sts)))
					}
					return make([]error, len(sts))
				}
				g := start(t, worker.Config{Source: src, Concurrency: 7, SettleEach: true, ProgressLog: notes,
					Handler: handler(func(_ context.Context, d *nixie.Delivery) error {
						if got := notes.of(d.Key); !slices.Equal(got, allProgress[:1]) {
							t.Errorf("message %s runs after %v", d.Key, got)
						}
						n := open.Add(1)
						for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
							continue
						}
						time.Sleep(2 * time.Millisecond)
						return nil
					})})
				time.Sleep(time.Minute)
				if len(src.verbs()) != 1000 || most.Load() > 7 || calls.Load() > c.calls {
					t.Errorf("%d settled in %d calls, %d at once", len(src.verbs()), calls.Load(), most.Load())
				}
				g.end()
			})
		})
	}
}

// A logged success is settled soon, also while others follow, and at once when all goroutines are
// idle. The end of the worker does not wait for more.
func TestRecordedSuccessesDoNotWaitForOthers(t *testing.T) {
	for _, c := range []struct {
		name    string
		long    string // takes an hour
		settled time.Duration
	}{{"a long one comes", "2", 51 * time.Millisecond}, {"nothing comes", "", 3 * time.Millisecond}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				var last atomic.Int64
				src := &script{feed: [][]*nixie.Delivery{deliveries(3)}}
				src.settle = func(_ context.Context, sts []nixie.Settlement) []error {
					if sts[0].Delivery.Key != "2" || c.long == "" {
						last.Store(int64(time.Since(begun)))
					}
					return make([]error, len(sts))
				}
				g := start(t, worker.Config{Source: src, Concurrency: 1, SettleEach: true, ProgressLog: &notebook{},
					Drain: 2 * time.Hour, Handler: handler(func(_ context.Context, d *nixie.Delivery) error {
						time.Sleep(time.Millisecond)
						if d.Key == c.long {
							time.Sleep(time.Hour)
						}
						return nil
					})})
				if c.long == "" {
					time.Sleep(5 * time.Millisecond)
				} else {
					time.Sleep(2 * time.Hour)
				}
				if took := time.Duration(last.Load()); len(src.verbs()) != 3 || took != c.settled {
					t.Errorf("%d settled, the quick ones after %s", len(src.verbs()), took)
				}
				ends := time.Now()
				g.end()
				if took := time.Since(ends); took > 0 {
					t.Errorf("the worker ended after %s", took)
				}
			})
		})
	}
}

// The worker logs only plain successes. Before any other outcome is settled it begins nothing, as
// that outcome may end the job.
func TestOnlyPlainSuccessesAreRecorded(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(d *nixie.Delivery) error
	}{
		{"failure", func(*nixie.Delivery) error { return errBoom }},
		{"new step", func(d *nixie.Delivery) error { return d.Step("one", func() error { return nil }) }},
		{"stream", func(d *nixie.Delivery) error { return nil }},
		{"panic", func(*nixie.Delivery) error { panic("boom") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ds := deliveries(20)
				if c.name == "stream" {
					ds[3].Stream, ds[4].Stream = "s", "s"
				}
				var waited atomic.Bool
				var last atomic.Int64
				begun := time.Now()
				notes := &notebook{}
				src := &script{feed: [][]*nixie.Delivery{ds}}
				src.settle = func(_ context.Context, sts []nixie.Settlement) []error {
					time.Sleep(time.Millisecond)
					waited.Store(false)
					last.Store(int64(time.Since(begun)))
					return make([]error, len(sts))
				}
				g := start(t, worker.Config{Source: src, Concurrency: 1, SettleEach: true, ProgressLog: notes,
					Handler: handler(func(_ context.Context, d *nixie.Delivery) error {
						if waited.Load() {
							t.Errorf("%s began before the last one was settled", d.Key)
						}
						if d.Key != "3" && d.Key != "4" {
							return nil
						}
						waited.Store(true)
						return c.do(d)
					})})
				time.Sleep(time.Minute)
				if took := time.Duration(last.Load()); took > 5*time.Millisecond {
					t.Errorf("the last one was settled after %s", took)
				}
				for i := range 20 {
					key := fmt.Sprint(i)
					want := allProgress
					if key == "3" || key == "4" {
						want = allProgress[:1]
					}
					if got := notes.of(key); !slices.Equal(got, want) {
						t.Errorf("progress of %s: %v, want %v", key, got, want)
					}
				}
				g.end()
			})
		})
	}
}

// The worker does not begin a delivery whose beginning it cannot log: after a crash that would look
// as if it had waited.
func TestNothingBeginsUnnoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &script{feed: [][]*nixie.Delivery{deliveries(10)}}
		notes := &notebook{refuse: func(lease.Progress) error { return errBoom }}
		g := start(t, worker.Config{Source: src, Concurrency: 3, SettleEach: true, ProgressLog: notes,
			Handler: handler(func(_ context.Context, d *nixie.Delivery) error {
				t.Errorf("%s was begun", d.Key)
				return nil
			})})
		time.Sleep(time.Second)
		for key, verb := range src.verbs() {
			if verb != nixie.Release {
				t.Errorf("%s was settled by %s", key, verb)
			}
		}
		g.end() // what the source was asked for is read after it
		if n := len(src.verbs()); n != 10 || !src.wants[0].LogProgress {
			t.Errorf("%d settled; %+v", n, src.wants[0])
		}
	})
}

// With a progress log the worker holds no more than it runs in a fifth of a second, or two
// deliveries for each goroutine. So other workers get their share.
func TestRecordedInHand(t *testing.T) {
	for _, c := range []struct {
		takes time.Duration
		most  int
	}{{10 * time.Millisecond, 4 * 20}, {time.Second, 4 * 2}} {
		synctest.Test(t, func(t *testing.T) {
			src := &script{}
			src.receive = func(_ context.Context, want nixie.Want) ([]*nixie.Delivery, error) { return deliveries(want.Max), nil }
			g := start(t, worker.Config{Source: src, Concurrency: 4, SettleEach: true, ProgressLog: &notebook{},
				Handler: handler(func(context.Context, *nixie.Delivery) error {
					time.Sleep(c.takes)
					return nil
				})})
			most := 0
			for range 1000 {
				time.Sleep(c.takes / 10)
				most = max(most, g.InHand())
			}
			if most > c.most || most < c.most/2 {
				t.Errorf("%d in hand, at most %d are wanted", most, c.most)
			}
			g.end()
		})
	}
}

func TestRecorderWantsSettleEach(t *testing.T) {
	_, err := worker.New(worker.Config{Source: &script{}, Handler: handler(succeed), ProgressLog: &notebook{}})
	if nixie.CodeOf(err) != nixie.CodeInvalid {
		t.Errorf("error is %v", err)
	}
}
