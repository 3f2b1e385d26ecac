package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/store/memory"
)

// atDepth is a check that answers.
func atDepth(name string, depth, threshold int) loop.Check {
	return loop.Check{Name: name, Depth: func(context.Context) (int, int, error) { return depth, threshold, nil }}
}

// R60: a depth at its threshold makes the group degraded, with the object of the specification. A
// check that fails, panics or does not answer makes it unhealthy.
func TestR60_HealthWithChecks(t *testing.T) {
	fails := func(name string, err error) loop.Check {
		return loop.Check{Name: name, Depth: func(context.Context) (int, int, error) { return 0, 100, err }}
	}
	const failing = `503 {"status":"unhealthy","checks":[{"name":"a","ok":false,"error":"%s"}]}`
	for name, c := range map[string]struct {
		checks []loop.Check
		want   string
	}{
		"none":  {nil, `200 {"status":"healthy"}`},
		"below": {[]loop.Check{atDepth("a", 99, 100)}, `200 {"status":"healthy","dlq":{"name":"a","depth":99,"threshold":100}}`},
		"at":    {[]loop.Check{atDepth("a", 100, 100)}, `200 {"status":"degraded","dlq":{"name":"a","depth":100,"threshold":100}}`},
		"above": {[]loop.Check{atDepth("a", 1e6, 100)}, `200 {"status":"degraded","dlq":{"name":"a","depth":1000000,"threshold":100}}`},
		"the fullest of several": {[]loop.Check{atDepth("a", 300, 1000), atDepth("b", 5, 10), atDepth("c", 0, 1)},
			`200 {"status":"healthy","dlq":{"name":"b","depth":5,"threshold":10}}`},
		"the first of two that are as full": {[]loop.Check{atDepth("a", 10, 10), atDepth("b", 100, 100)},
			`200 {"status":"degraded","dlq":{"name":"a","depth":10,"threshold":10}}`},
		"an error": {[]loop.Check{fails("a", errors.New("no answer"))}, fmt.Sprintf(failing, "no answer")},
		"a panic": {[]loop.Check{{Name: "a", Depth: func(context.Context) (int, int, error) { panic("at the disco") }}},
			fmt.Sprintf(failing, "panic: at the disco")},
		"no threshold":     {[]loop.Check{atDepth("a", 1, 0)}, fmt.Sprintf(failing, "threshold is 0: a check has to return 1 or more")},
		"a negative depth": {[]loop.Check{atDepth("a", -1, 1)}, fmt.Sprintf(failing, "depth is -1: a check has to return 0 or more")},
		"one of two": {[]loop.Check{fails("a", errors.New("no answer")), atDepth("b", 7, 5)},
			`503 {"status":"unhealthy","dlq":{"name":"b","depth":7,"threshold":5},"checks":[{"name":"a","ok":false,"error":"no answer"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inGroup(t, loop.GroupConfig{Checks: c.checks}, 1, quick, func(_ *bureau, g *loop.Group) {
					if got := probe(g, http.MethodGet, "/health/ready"); got != c.want {
						t.Errorf("ready: %s\nwant   %s", got, c.want)
					}
					if got := probe(g, http.MethodGet, "/health/live"); got != `200 {"status":"healthy"}` {
						t.Errorf("live: %s", got)
					}
				})
			})
		})
	}
}

func quick(context.Context, request) (float64, error) { return 1, nil }

// A check that hangs costs each request a second and the process one goroutine, however often it is
// asked, and is well again when it answers.
func TestHealthWhileACheckHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		released := make(chan struct{})
		var calls atomic.Int64
		hangs := loop.Check{Name: "a", Depth: func(context.Context) (int, int, error) {
			calls.Add(1)
			<-released // it does not listen to its context
			return 1, 2, nil
		}}
		inGroup(t, loop.GroupConfig{Checks: []loop.Check{hangs, atDepth("b", 1, 100)}}, 1, quick, func(_ *bureau, g *loop.Group) {
			for range 5 {
				begun := time.Now()
				got := probe(g, http.MethodGet, "/health/ready")
				if took := time.Since(begun); took != time.Second || !strings.Contains(got, `"error":"no answer within 1s"`) ||
					!strings.HasPrefix(got, "503") {
					t.Errorf("after %s: %s", took, got)
				}
			}
			if n := calls.Load(); n != 1 {
				t.Errorf("%d calls of a check that hangs", n)
			}
			close(released)
			synctest.Wait()
			if got := probe(g, http.MethodGet, "/health/ready"); !strings.HasPrefix(got, "200") || calls.Load() != 2 {
				t.Errorf("afterwards: %s, %d calls", got, calls.Load())
			}
		})
	})
}

// The depth of a mailbox is a check. It falls when its consumer runs.
func TestHealthOfAMailbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		dead := must(loop.In[deadOrder, struct{}](st, "orders-dlq", loop.Config{}))(t)
		inGroup(t, loop.GroupConfig{Checks: []loop.Check{loop.DepthOf(dead, 2)}}, 1, quick, func(_ *bureau, g *loop.Group) {
			for _, want := range []string{"healthy", "healthy", "degraded"} {
				var h struct{ Status string }
				_, body, _ := strings.Cut(probe(g, http.MethodGet, "/health/ready"), " ")
				if err := json.Unmarshal([]byte(body), &h); err != nil || h.Status != want {
					t.Errorf("%s, %v; want %s", body, err, want)
				}
				must(dead.Send(ctx, died("a")))(t)
			}
		})
	})
}

// Checks that make no sense are refused, and the refusal names the field.
func TestBadChecks(t *testing.T) {
	many := make([]loop.Check, loop.MaxChecks+1)
	for i := range many {
		many[i] = atDepth(fmt.Sprint("check-", i), 0, 1)
	}
	for name, c := range map[string]struct {
		checks []loop.Check
		want   string
	}{
		"no name":     {[]loop.Check{atDepth("", 0, 1)}, "name of the check is empty"},
		"no function": {[]loop.Check{{Name: "a"}}, "set Depth"},
		"twice":       {[]loop.Check{atDepth("a", 0, 1), atDepth("a", 0, 1)}, "two checks of the group have the name a"},
		"too many":    {many, "give up to 100"},
	} {
		_, err := loop.NewGroup(loop.GroupConfig{Loops: []loop.Loop{loopFunc(idle)}, Checks: c.checks})
		if !errors.Is(err, loop.ErrInvalidParameter) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an invalid parameter with %q", name, err, c.want)
		}
	}
	if _, err := loop.NewGroup(loop.GroupConfig{Loops: []loop.Loop{loopFunc(idle)}, Checks: slices.Clone(many[1:])}); err != nil {
		t.Errorf("as many as allowed: %v", err)
	}
}
