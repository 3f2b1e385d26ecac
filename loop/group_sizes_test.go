package loop_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// leased makes a main loop with a lease.
func leased(t *testing.T, lease time.Duration) loop.Loop {
	box := must(loop.In[request, result](memory.New(memory.Options{}), "requests", loop.Config{}))(t)
	return must(loop.NewMainLoop(loop.MainConfig[string, float64]{Requests: box, Worker: worker.Config{Lease: lease, Logger: quiet},
		Execute: func(context.Context, request) (float64, error) { return 0, nil }}))(t)
}

// Sizes that do not fit together are refused with the least that does, and that is accepted.
func TestR51_Sizes(t *testing.T) {
	const s = time.Second
	own := loopFunc(idle)
	for name, tc := range map[string]struct {
		bad, good loop.GroupConfig
		lease     [2]time.Duration // of a main loop; 0 is a loop of one's own
		names     string
	}{
		"visibility": {
			loop.GroupConfig{Watchdog: true}, loop.GroupConfig{Watchdog: true}, [2]time.Duration{1020 * s, 1020*s + 1},
			"visibility of loop requests is 17m0s: others would get its messages before the watchdog ends the process; " +
				"give its worker a lease of more than 17m0s, or none",
		},
		"visibility by default": {
			loop.GroupConfig{Watchdog: true, Threshold: 25 * s, Longest: 5 * s, Interval: s},
			loop.GroupConfig{Watchdog: true, Threshold: 25*s - 1, Longest: 5 * s, Interval: s},
			[2]time.Duration{loop.DefaultVisibility, loop.DefaultVisibility}, "more than 30s",
		},
		"threshold": {
			loop.GroupConfig{Threshold: 301 * s}, loop.GroupConfig{Threshold: 301*s + 1}, [2]time.Duration{30 * s, 30 * s},
			"loop requests may be silent for 5m1s: it waits for work for 1s, and an item may take 5m0s; " +
				"give a threshold of more than 5m1s",
		},
		"threshold of a loop of one's own": {
			loop.GroupConfig{Threshold: 320 * s}, loop.GroupConfig{Threshold: 320*s + 1}, [2]time.Duration{},
			"loop loop-0 may be silent for 5m20s: it waits for work for 20s, and an item may take 5m0s; " +
				"give a threshold of more than 5m20s",
		},
		"interval": {
			loop.GroupConfig{Watchdog: true, Interval: 240 * s}, loop.GroupConfig{Watchdog: true, Interval: 240*s - 1}, [2]time.Duration{},
			"looks every 4m0s for loops that are silent for 12m0s: give a threshold of more than 12m0s, or a shorter interval",
		},
		"interval without a watchdog": {
			loop.GroupConfig{Interval: -1}, loop.GroupConfig{Interval: time.Hour}, [2]time.Duration{}, "interval of the group is -1ns",
		},
		"extension": {
			loop.GroupConfig{ExtendFor: 179 * s}, loop.GroupConfig{ExtendFor: 180 * s}, [2]time.Duration{},
			"extensions for 2m59s come every 1m0s: extend for 3m0s or more, or more often",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for i, c := range []loop.GroupConfig{tc.bad, tc.good} {
				c.Loops = []loop.Loop{own}
				if tc.lease[i] > 0 {
					c.Loops[0] = leased(t, tc.lease[i])
				}
				_, err := loop.NewGroup(c)
				if i == 0 && (!errors.Is(err, loop.ErrInvalidParameter) || !strings.Contains(err.Error(), tc.names)) {
					t.Errorf("refused: %v\nwant       …%s", err, tc.names)
				}
				if i == 1 && err != nil {
					t.Errorf("what fits just so: %v", err)
				}
			}
		})
	}
}

// R51: with a watchdog a group raises the visibility of loops whose configs give none, and says so
// once. So default sizes fit, and one that was given is never changed.
func TestR51_SizesByDefault(t *testing.T) {
	loops := func(lease time.Duration) []loop.Loop {
		st := memory.New(memory.Options{})
		work := worker.Config{Lease: lease, Logger: quiet}
		requests := must(loop.In[request, result](st, "requests", loop.Config{}))(t)
		dead := must(loop.In[deadOrder, struct{}](st, "orders-dlq", loop.Config{}))(t)
		return []loop.Loop{
			must(loop.NewMainLoop(loop.MainConfig[string, float64]{Requests: requests, Worker: work, Execute: quick}))(t),
			must(loop.NewConsumer(loop.ConsumerConfig[string]{Mailbox: dead, Worker: work,
				Handle: func(context.Context, deadOrder) error { return nil }}))(t),
		}
	}
	for name, c := range map[string]struct {
		group loop.GroupConfig
		lease time.Duration
		said  string // in the one line of the log; "" is no line
		err   string
	}{
		"defaults":    {loop.GroupConfig{Watchdog: true}, 0, `loops="[requests orders-dlq]" visibility=18m0s`, ""},
		"no watchdog": {loop.GroupConfig{}, 0, "", ""},
		"short limits": {
			loop.GroupConfig{Watchdog: true, Threshold: 20 * time.Second, Longest: 5 * time.Second, Interval: time.Second}, 0, "", "",
		},
		"limits between the defaults": {
			loop.GroupConfig{Watchdog: true, Threshold: 25 * time.Second, Longest: 5 * time.Second, Interval: time.Second}, 0,
			"loops=[requests] visibility=1m30s", "",
		},
		"a lease of its own that fits":    {loop.GroupConfig{Watchdog: true}, visible, "", ""},
		"a lease of its own that is less": {loop.GroupConfig{Watchdog: true}, time.Minute, "", "visibility of loop requests is 1m0s"},
		"more than a lease may have": {
			loop.GroupConfig{Watchdog: true, Threshold: loop.MaxVisibility, Longest: time.Minute}, 0, "", "lease is 12h2m0s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var lines bytes.Buffer
			c.group.Loops, c.group.Logger = loops(c.lease), slog.New(slog.NewTextHandler(&lines, nil))
			_, err := loop.NewGroup(c.group)
			if wrong := errors.Is(err, loop.ErrInvalidParameter); wrong != (c.err != "") || !strings.Contains(fmt.Sprint(err), c.err) {
				t.Errorf("%v, want %q", err, c.err)
			}
			if n := strings.Count(lines.String(), "\n"); n != min(len(c.said), 1) || !strings.Contains(lines.String(), c.said) {
				t.Errorf("said %q, want %q", &lines, c.said)
			}
		})
	}
}

// Every option takes 0 for its default, and refuses what makes no sense.
func TestBadGroups(t *testing.T) {
	one := []loop.Loop{loopFunc(idle)}
	const limit = loop.MaxVisibility
	set := map[string]func(*loop.GroupConfig, time.Duration){
		"threshold": func(c *loop.GroupConfig, d time.Duration) { c.Threshold = d },
		"interval":  func(c *loop.GroupConfig, d time.Duration) { c.Interval = d },
		"longest":   func(c *loop.GroupConfig, d time.Duration) { c.Longest = d },
		"extend":    func(c *loop.GroupConfig, d time.Duration) { c.ExtendEvery = d },
		"for":       func(c *loop.GroupConfig, d time.Duration) { c.ExtendFor = d },
		"grace":     func(c *loop.GroupConfig, d time.Duration) { c.Grace = d },
	}
	for name, set := range set {
		for d, fine := range map[time.Duration]bool{0: true, -1: name == "grace", -time.Second: false, limit + 1: false} {
			c := loop.GroupConfig{Loops: one}
			set(&c, d)
			if _, err := loop.NewGroup(c); (err == nil) != fine || err != nil && !errors.Is(err, loop.ErrInvalidParameter) {
				t.Errorf("%s %s: %v", name, d, err)
			}
		}
	}
	joined := leased(t, loop.DefaultVisibility)
	must(loop.NewGroup(loop.GroupConfig{Loops: []loop.Loop{joined}}))(t)
	for name, c := range map[string]loop.GroupConfig{
		"no loops":              {},
		"too many loops":        {Loops: make([]loop.Loop, loop.MaxLoops+1)},
		"no loop":               {Loops: []loop.Loop{nil}},
		"a loop of others":      {Loops: []loop.Loop{joined}},
		"a short extension":     {Loops: one, ExtendEvery: 1, ExtendFor: loop.MinVisibility - 1},
		"a long item":           {Loops: one, Longest: loop.DefaultThreshold},
		"a watchdog that rests": {Loops: one, Watchdog: true, Interval: time.Hour},
	} {
		if _, err := loop.NewGroup(c); !errors.Is(err, loop.ErrInvalidParameter) {
			t.Errorf("%s: %v, want an invalid parameter", name, err)
		}
	}
	box := must(loop.In[request, result](memory.New(memory.Options{}), "requests", loop.Config{}))(t)
	if _, err := loop.NewMainLoop(loop.MainConfig[string, float64]{Requests: box, Worker: worker.Config{Beat: func() {}},
		Execute: func(context.Context, request) (float64, error) { return 0, nil }}); !errors.Is(err, loop.ErrInvalidParameter) {
		t.Errorf("a loop with a beat of its own: %v", err)
	}
}
