package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
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

// lines is a log that a test reads.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// expect compares the log with the beginnings of its lines.
func (l *lines) expect(t *testing.T, want ...string) {
	t.Helper()
	got := strings.Split(strings.TrimSuffix(l.text(), "\n"), "\n")
	same := len(got) == len(want)
	for i := 0; same && i < len(got); i++ {
		same = strings.HasPrefix(got[i], want[i])
	}
	if !same {
		t.Errorf("logged\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A source that fails for a minute gives one line at error, and one line when it works again.
func TestLogOfASourceThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		src := &script{}
		src.receive = func(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
			switch since := time.Since(begun); {
			case since < time.Minute && int(since/time.Second)%2 == 0:
				return nil, coded(nixie.CodeUnavailable)
			case since < time.Minute:
				return nil, coded(nixie.CodeOutcomeUnknown)
			}
			wait(ctx, want.Wait)
			return nil, nil
		}
		log := &lines{}
		g := start(t, worker.Config{Source: src, Handler: handler(succeed), Logger: log.logger(), Queue: "q"})
		time.Sleep(2 * time.Minute)
		g.end()
		log.expect(t,
			`level=ERROR msg="nothing can be received; it is tried again" queue=q state=receive `+
				`code=unavailable error="as the test wants it"`,
			`level=ERROR msg="nothing can be received; it is tried again" queue=q state=receive code=outcome-unknown`,
			`level=INFO msg="messages are received again" queue=q state=receive events=`)
	})
}

// Renewals and settlements that fail for a while give one line at error each.
func TestLogOfCallsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		src := &script{feed: [][]*nixie.Delivery{deliveries(20)}}
		src.settle = func(_ context.Context, sts []nixie.Settlement) []error {
			if time.Since(begun) < 20*time.Second {
				return each(len(sts), coded(nixie.CodeUnavailable))
			}
			return make([]error, len(sts))
		}
		src.extend = func(_ context.Context, ds []*nixie.Delivery) []error {
			if time.Since(begun) < 15*time.Second {
				return each(len(ds), coded(nixie.CodeUnavailable))
			}
			return make([]error, len(ds))
		}
		log := &lines{}
		g := start(t, worker.Config{Source: src, Handler: handler(succeed), Logger: log.logger(), Queue: "q"})
		time.Sleep(2 * time.Minute)
		g.end()
		log.expect(t,
			`level=ERROR msg="outcomes cannot be settled" queue=q state=settle code=unavailable`,
			`level=ERROR msg="leases cannot be renewed; it is tried again" queue=q state=renew `+
				`code=unavailable error="renew 20 of 20 leases: `,
			`level=INFO msg="leases are renewed again" queue=q state=renew events=1`,
			`level=INFO msg="outcomes are settled again" queue=q state=settle events=`)
	})
}

// Lost leases and outcomes that come too late give one line at error each. They are over after a
// minute without an event.
func TestLogOfLostLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		src := &script{feed: [][]*nixie.Delivery{deliveries(8)}}
		src.extend = func(_ context.Context, ds []*nixie.Delivery) []error {
			return each(len(ds), coded(nixie.CodeLeaseLost))
		}
		src.settle = func(_ context.Context, sts []nixie.Settlement) []error {
			return each(len(sts), coded(nixie.CodeLeaseLost))
		}
		log := &lines{}
		g := start(t, worker.Config{Source: src, Concurrency: 8, Logger: log.logger(), Queue: "q",
			Handler: handler(func(context.Context, *nixie.Delivery) error {
				time.Sleep(15*time.Second - time.Since(begun))
				return nil
			})})
		time.Sleep(2 * time.Minute)
		g.end()
		log.expect(t,
			`level=ERROR msg="a lease was lost: others get the message" queue=q state=lease id=`,
			`level=ERROR msg="an outcome came too late and does not count" queue=q state=late id=`,
			`level=INFO msg=`, `level=INFO msg=`)
		if text := log.text(); strings.Count(text, "events=8") != 2 {
			t.Error(text)
		}
	})
}

// The log has a line for a handler that goes on after its timeout.
func TestLogOfALateHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		src := &script{feed: [][]*nixie.Delivery{deliveries(2)}}
		g := start(t, worker.Config{Source: src, Concurrency: 2, Timeout: time.Second, Logger: log.logger(), Queue: "q",
			Handler: handler(func(context.Context, *nixie.Delivery) error {
				time.Sleep(3 * time.Second)
				return nil
			})})
		time.Sleep(10 * time.Second)
		g.end()
		log.expect(t, `level=WARN msg="a handler goes on after its timeout" queue=q state=timeout id=`)
	})
}

// The log has each death with the masked text; deaths of one group that are settled together share
// a line. It has nothing else of the message.
func TestLogOfDeaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ds := deliveries(4)
		for _, d := range ds {
			d.Body, d.Headers, d.Key, d.Type = []byte("hidden body"), []nixie.Header{{Name: "h", Value: "hidden header"}},
				"hidden key "+d.Key, "mail"
		}
		src := &script{feed: [][]*nixie.Delivery{ds}}
		log := &lines{}
		g := start(t, worker.Config{
			Source: src, Concurrency: 1, Logger: log.logger(), Queue: "q",
			Mask: func(f *nixie.Failure) { f.Text = strings.ReplaceAll(f.Text, "hidden", "***") },
			Handler: handler(func(_ context.Context, d *nixie.Delivery) error {
				if strings.HasSuffix(d.Key, "3") {
					return errors.New("tried again, and no death")
				}
				return nixie.Permanent(fmt.Errorf("hidden secret, %s", strings.Repeat("long ", 1000)))
			}),
		})
		time.Sleep(time.Second)
		g.end()
		text := log.text()
		if n := strings.Count(text, `level=WARN msg="message died" queue=q id=`); n == 0 || n > 3 || strings.Contains(text, "no death") {
			t.Errorf("logged %s", text)
		}
		if !strings.Contains(text, `type=mail verb=bury cause=permanent attempts=1 reason=`) ||
			!strings.Contains(text, `error="*** secret, long`) || strings.Contains(text, "hidden") {
			t.Errorf("logged %s", text)
		}
		if len(text) > 3*1000 {
			t.Errorf("%d bytes", len(text))
		}
	})
}

// Deaths of more groups than one call logs are counted.
func TestLogOfManyDeaths(t *testing.T) {
	log := &lines{}
	ds := deliveries(30)
	for i, d := range ds {
		d.Abandoned, d.Crashes, d.Attempts, d.Type = true, 100, 100, strings.Repeat("t", 1+i%15)
	}
	src := &script{feed: [][]*nixie.Delivery{ds}}
	desk, err := worker.NewDesk(worker.Config{Source: src, Logger: log.logger(), Queue: "q", Decider: byType{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := desk.Receive(t.Context(), nixie.Want{Max: 30}); err != nil {
		t.Fatal(err)
	}
	text := log.text()
	if strings.Count(text, `msg="message died"`) != 10 || strings.Count(text, "messages=2") != 10 ||
		!strings.Contains(text, `level=WARN msg="more messages died" queue=q messages=10`) {
		t.Error(text)
	}
}

// byType buries all messages, with a group for each type.
type byType struct{}

func (byType) Decide(d *nixie.Delivery, f *nixie.Failure, _ time.Time) nixie.Settlement {
	return nixie.Settlement{Delivery: d, Verb: nixie.Bury, Failure: f,
		Burial: &nixie.Burial{Cause: nixie.CausePoison, Status: nixie.StatusOpen, Fingerprint: d.Type}}
}

// A store that is closed too early ends its worker with an error. A worker that waits for work ends
// at once, and a busy one at the next renewal. The contexts of handlers end.
func TestStoreIsClosedUnderItsWorker(t *testing.T) {
	for _, busy := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			st := memory.New(memory.Options{})
			if busy {
				fill(t, st, "a", "b", "c")
			}
			log := &lines{}
			var told atomic.Int64
			g := start(t, worker.Config{Source: store.NewSource(st, "q"), Concurrency: 1, Logger: log.logger(),
				Handler: handler(func(ctx context.Context, _ *nixie.Delivery) error {
					<-ctx.Done()
					told.Add(1)
					return ctx.Err()
				})})
			time.Sleep(time.Second)
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			err := <-g.done
			if !errors.Is(err, nixie.ErrClosed) || !strings.Contains(err.Error(), "source of q was closed under its worker") {
				t.Errorf("Run: %v", err)
			}
			if took := time.Since(begun); took > 100*time.Millisecond && !busy || took > 10*time.Second {
				t.Errorf("took %s", took)
			}
			if busy != (told.Load() == 1) || g.InHand() != 0 {
				t.Errorf("%d handlers were told, %d in hand", told.Load(), g.InHand())
			}
			if text := log.text(); !strings.Contains(text, `msg="worker ended" queue=q state=end error="source of q was closed`) {
				t.Error(text)
			}
		})
	}
}

// If the context ends first and the store is closed then, Run returns an error only if outcomes
// were lost.
func TestStoreIsClosedAfterTheEnd(t *testing.T) {
	for _, busy := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			st := memory.New(memory.Options{})
			if busy {
				fill(t, st, "a")
			}
			g := start(t, worker.Config{Source: store.NewSource(st, "q"), Logger: slog.New(slog.DiscardHandler),
				Handler: handler(func(context.Context, *nixie.Delivery) error {
					time.Sleep(10 * time.Second)
					return nil
				})})
			time.Sleep(time.Second)
			g.stop()
			synctest.Wait()
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			if err := <-g.done; busy != errors.Is(err, nixie.ErrClosed) {
				t.Errorf("busy %v: Run: %v", busy, err)
			}
		})
	}
}

var _ policy.Decider = byType{}
