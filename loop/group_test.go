package loop_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// visible is a lease that the defaults of a group allow.
const visible = loop.DefaultThreshold + loop.DefaultLongest + time.Second

// probe answers one request to the health port.
func probe(g *loop.Group, method, path string) string {
	w := httptest.NewRecorder()
	g.Health().ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return fmt.Sprint(w.Code, " ", strings.TrimSpace(w.Body.String()))
}

// inGroup runs a main loop in a group, in virtual time, while do is at work. It returns how often
// the watchdog wanted to end the process, and what was said then.
func inGroup(t *testing.T, c loop.GroupConfig, parallel int, handle execute, do func(*bureau, *loop.Group)) (kills int, said string) {
	t.Helper()
	var words bytes.Buffer
	o := &bureau{st: memory.New(memory.Options{})}
	o.requests = must(loop.In[request, result](o.st, "requests", loop.Config{Logger: quiet}))(t)
	o.loop = must(loop.NewMainLoop(loop.MainConfig[string, float64]{Requests: o.requests, Execute: handle,
		Worker: worker.Config{Concurrency: parallel, Lease: visible, Logger: quiet}}))(t)
	c.Loops, c.Logger, c.Dump = append(c.Loops, o.loop), slog.New(slog.NewTextHandler(&words, nil)), &words
	g := must(loop.NewGroup(c))(t)
	g.OnKill(func() { kills++ })
	run, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- g.Run(run) }()
	synctest.Wait()
	do(o, g)
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	return kills, words.String()
}

func pass(d time.Duration) { <-time.After(d) }

// The health port tells whether a loop is well, late or well again. The watchdog ends the process
// of one that stays stuck, however busy the rest of the loop is, and leaves others alone.
func TestR50_HealthAndWatchdog(t *testing.T) {
	var stuck atomic.Bool
	quick := func(context.Context, request) (float64, error) { return 1, nil }
	for name, c := range map[string]struct {
		handle execute
		bodies []string // of requests
		own    []loop.Loop
		want   string // at 200, 400 and 600 s, and at the end
		kills  int
	}{
		"idle":  {quick, nil, nil, "200 200 200 200", 0},
		"quick": {quick, []string{"a", "b"}, nil, "200 200 200 200", 0},
		"late, and well again": {func(context.Context, request) (float64, error) { pass(500 * time.Second); return 1, nil },
			[]string{"a"}, nil, "200 503 200 200", 0},
		"slow, but it beats": {func(ctx context.Context, _ request) (float64, error) {
			for range 60 {
				pass(100 * time.Second)
				loop.Beat(ctx)
			}
			return 1, nil
		}, []string{"a"}, nil, "200 200 200 200", 0},
		"stuck, and another is well": {func(_ context.Context, r request) (float64, error) {
			if r.Request == "a" && !stuck.Swap(true) {
				pass(4000 * time.Second) // it does not listen to ctx
			}
			return 1, nil
		}, []string{"a", "b", "c"}, nil, "200 503 503 503", 1},
		"a loop of one's own that hangs": {quick, nil, []loop.Loop{loopFunc(func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		})}, "200 503 503 503", 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []string
				begun := time.Now()
				kills, said := inGroup(t, loop.GroupConfig{Watchdog: true, Loops: c.own}, 2, c.handle, func(o *bureau, g *loop.Group) {
					for _, body := range c.bodies {
						must(o.requests.Send(ctx, request{Request: body}))(t)
					}
					for _, wait := range []time.Duration{200, 200, 200, 1000} {
						pass(wait * time.Second)
						code, _, _ := strings.Cut(probe(g, http.MethodGet, "/health/ready"), " ")
						got = append(got, code)
					}
					if live := probe(g, http.MethodGet, "/health/live"); live != `200 {"status":"healthy"}` {
						t.Error("live: ", live)
					}
					if len(c.bodies) > 0 {
						pass(6000*time.Second - time.Since(begun))
					}
				})
				if text := strings.Join(got, " "); text != c.want || kills != c.kills {
					t.Errorf("ready: %s, %d kills; want %s and %d", text, kills, c.want, c.kills)
				}
				wanted := []string{"level=ERROR+4", "has not beaten for", "goroutine "}
				if len(c.bodies) > 0 {
					wanted = append(wanted, "loop requests has", "at work on message")
				}
				for _, part := range wanted {
					if strings.Contains(said, part) != (c.kills > 0) {
						t.Errorf("the watchdog said %.2000s\nand %q in it is %t", said, part, c.kills == 0)
					}
				}
			})
		})
	}
}

// The answers of the health port.
func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := loopFunc(func(ctx context.Context) error {
			pass(time.Minute)
			return errOther
		})
		var last *loop.Group
		quick := func(context.Context, request) (float64, error) { return 1, nil }
		inGroup(t, loop.GroupConfig{}, 1, quick, func(_ *bureau, g *loop.Group) {
			for _, q := range []struct{ method, path, want string }{
				{"GET", "/health/live", `200 {"status":"healthy"}`},
				{"HEAD", "/health/ready", `200 {"status":"healthy"}`},
				{"POST", "/health/live", "404 404 page not found"},
				{"GET", "/health", "404 404 page not found"},
				{"GET", "/health/live/", "404 404 page not found"},
				{"GET", "/metrics", "404 404 page not found"},
			} {
				if got := probe(g, q.method, q.path); got != q.want {
					t.Errorf("%s %s: %s", q.method, q.path, got)
				}
			}
			last = g
		})
		if got := probe(last, "GET", "/health/ready"); got != `503 {"status":"unhealthy","why":["loop requests is ended"]}` {
			t.Error("a group that has ended: ", got)
		}
		g := must(loop.NewGroup(loop.GroupConfig{Loops: []loop.Loop{fails, loopFunc(idle)}, Logger: quiet}))(t)
		if got := probe(g, "GET", "/health/ready"); !strings.HasPrefix(got, "503 ") || !strings.Contains(got, "loop loop-0 is not begun") {
			t.Error("a group that does not run: ", got)
		}
		run, stop := context.WithTimeout(ctx, time.Hour)
		defer stop()
		done := make(chan error, 1)
		go func() { done <- g.Run(run) }()
		pass(30 * time.Second)
		if got := probe(g, "GET", "/health/ready"); got != `200 {"status":"healthy"}` {
			t.Error("a group of loops of one's own: ", got)
		}
		pass(time.Minute)
		if got := probe(g, "GET", "/health/ready"); got != `503 {"status":"unhealthy","why":["loop loop-0 is ended"]}` {
			t.Error("after one has ended: ", got)
		}
		if err := <-done; !errors.Is(err, errOther) || time.Now().Before(mustDeadline(run)) {
			t.Errorf("the group ended with %v, and has to go on without the loop that failed", err)
		}
	})
}

func mustDeadline(ctx context.Context) time.Time {
	at, _ := ctx.Deadline()
	return at
}

// loopFunc is a loop of one's own.
type loopFunc func(context.Context) error

func (f loopFunc) Run(ctx context.Context) error { return f(ctx) }

// idle is a loop that finds nothing to do.
func idle(ctx context.Context) error {
	for ctx.Err() == nil {
		loop.Beat(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(loop.MaxWait):
		}
	}
	return ctx.Err()
}

// A message stays invisible while its handler beats, for as long as that takes, and no longer.
func TestExtensionsNeedBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const beats = 4000 * time.Second
		var lost error
		var got time.Duration
		begun := time.Now()
		inGroup(t, loop.GroupConfig{}, 2, func(ctx context.Context, _ request) (float64, error) {
			if lost != nil {
				got = time.Since(begun)
				return 1, nil
			}
			for time.Since(begun) < beats {
				pass(200 * time.Second)
				loop.Beat(ctx)
			}
			<-ctx.Done()
			lost = context.Cause(ctx)
			return 0, lost
		}, func(o *bureau, _ *loop.Group) {
			must(o.requests.Send(ctx, request{}))(t)
			pass(2 * beats)
		})
		earliest, latest := beats+loop.DefaultExtendFor, beats+loop.DefaultLongest+loop.DefaultExtendFor+time.Minute
		if got < earliest || got > latest || !errors.Is(lost, worker.ErrLeaseLost) {
			t.Errorf("the message came again after %s, want %s to %s; its handler ended by: %v", got, earliest, latest, lost)
		}
	})
}

// When a group stops, what runs may finish for the grace, and what has not begun is free at once,
// all of it. Abort ends the grace.
func TestGroupStops(t *testing.T) {
	for name, abort := range map[string]bool{"by itself": false, "aborted": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				finished := false
				o := &bureau{st: memory.New(memory.Options{})}
				o.requests = must(loop.In[request, result](o.st, "requests", loop.Config{Logger: quiet}))(t)
				l := must(loop.NewMainLoop(loop.MainConfig[string, float64]{
					Requests: o.requests, Worker: worker.Config{Concurrency: 1, Logger: quiet},
					Execute: func(ctx context.Context, _ request) (float64, error) {
						select {
						case <-ctx.Done():
							return 0, context.Cause(ctx)
						case <-time.After(20 * time.Second):
							finished = true
							return 1, nil
						}
					},
				}))(t)
				g := must(loop.NewGroup(loop.GroupConfig{Loops: []loop.Loop{l}, Logger: quiet}))(t)
				for range 10 {
					must(o.requests.Send(ctx, request{}))(t)
				}
				run, stop := context.WithCancel(ctx)
				done := make(chan error, 1)
				go func() { done <- g.Run(run) }()
				pass(time.Second)
				stop()
				pass(time.Second)
				if got := must(o.requests.Receive(ctx, loop.Max(10)))(t); len(got) != 9 {
					t.Errorf("%d of the nine requests that have not begun are free", len(got))
				}
				if got := probe(g, "GET", "/health/ready"); !strings.Contains(got, "loop requests is stopping") {
					t.Error(got)
				}
				if abort {
					g.Abort()
				}
				if err := <-done; err != nil || finished == abort {
					t.Errorf("the group ended with %v, and the request that ran has finished: %t", err, finished)
				}
				if got := must(o.requests.Receive(ctx, loop.Max(10)))(t); (len(got) == 1) != abort {
					t.Errorf("the request that ran is there %d times", len(got))
				}
			})
		})
	}
}

// A loop that has ended stays so when its group stops: the health port tells which loops still have
// something in hand.
func TestALoopThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends := loopFunc(func(context.Context) error { return nil })
		lasts := loopFunc(func(ctx context.Context) error {
			err := idle(ctx)
			pass(20 * time.Second)
			return err
		})
		g := must(loop.NewGroup(loop.GroupConfig{Loops: []loop.Loop{ends, lasts}, Logger: quiet}))(t)
		run, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- g.Run(run) }()
		pass(time.Second)
		stop()
		pass(time.Second)
		if why := strings.Join(g.Unready(), ", "); why != "loop loop-0 is ended, loop loop-1 is stopping" {
			t.Error(why)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Run reports a loop that ignores the end of its context, and can be called once.
func TestGroupWithADeafLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		g := must(loop.NewGroup(loop.GroupConfig{Loops: []loop.Loop{loopFunc(func(context.Context) error {
			<-release
			return nil
		})}, Grace: -1, Dump: io.Discard}))(t)
		run, stop := context.WithCancel(ctx)
		stop()
		if err := g.Run(run); !errors.Is(err, worker.ErrStuck) {
			t.Errorf("a loop that is stuck: %v", err)
		}
		if err := g.Run(ctx); !errors.Is(err, loop.ErrInvalidParameter) {
			t.Errorf("the second Run: %v", err)
		}
	})
}
