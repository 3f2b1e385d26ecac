package console_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/console/browser"
)

// What an incident is here.
const (
	incidentRedriven = 30_000
	incidentLetters  = 60_000
	incidentSearches = 40
	incidentAsked    = 100 // pages of those who do not search
)

// Bounds of the pages of an incident.
const (
	oldest  = 5 * time.Second        // what a page shows that is watched
	slowest = 300 * time.Millisecond // p99 of the first page while others search
)

// truth has how many letters of an operation were to go, and when.
type truth struct {
	at   []time.Time
	toGo []int64
}

// age returns how old a number is that a page shows at a moment.
func (h *truth) age(shown int64, at time.Time) time.Duration {
	last := 0
	for i := range h.at {
		if h.at[i].After(at) {
			break
		}
		if h.toGo[i] >= shown {
			last = i
		} else {
			return at.Sub(h.at[last])
		}
	}
	return 0
}

// A redrive of many letters is watched in a browser until its end.
func TestIncidentIsFollowed(t *testing.T) {
	b := browser.For(t)
	c := watched(t)
	c.dieMany(t, incidentRedriven)
	operation := c.redrive(t)
	id, err := nixie.ParseID(path.Base(operation))
	if err != nil {
		t.Fatal(err)
	}
	tab := b.Open(c.server.URL, browser.Look{})
	defer tab.Close()
	tab.Go(operation, http.StatusOK)
	began := time.Now()
	var known truth
	var ages []time.Duration
	numbers, silent := map[int64]bool{}, time.Duration(0)
	const looks = `((f) => [f ? f.parentElement.querySelector("dd").innerText.replace(/\D/g, "") : "0",
		document.querySelector("main").innerText.includes("It runs.") ? "runs" : "", document.querySelector("#live").innerText])(
		[...document.querySelectorAll("main .figures dt")].find((e) => e.innerText === "to go"))`
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		op, err := c.office.Operation(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		known.at, known.toGo = append(known.at, time.Now()), append(known.toGo, op.Pending)
		seen := browser.Ask[[]string](tab, looks)
		n, err := strconv.ParseInt(seen[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		age := known.age(n, time.Now())
		ages, numbers[n] = append(ages, age), true
		if !strings.Contains(seen[2], "as of") {
			silent = max(silent, age)
		}
		if n == 0 && seen[1] == "" || time.Since(began) > 5*time.Minute {
			break
		}
		<-tick.C
	}
	t.Logf("redrive of %d letters, watched for %s: %d looks at the page, %d numbers to go; greatest age of a page %s, median %s",
		incidentRedriven, since(began), len(ages), len(numbers), slices.Max(ages).Round(10*time.Millisecond), quantile(ages, 50))
	if slices.Max(ages) > oldest {
		t.Errorf("a page was %s old, the limit is %s", slices.Max(ages), oldest)
	}
	if silent > oldest+2*time.Second { // its script looks each second, and a busy machine takes its time
		t.Errorf("a page of %s ago does not say how old it is", silent)
	}
	clean(t, tab)
}

// dieMany lets letters die in groups that a store takes at once.
func (c *crowd) dieMany(t *testing.T, count int) {
	t.Helper()
	const atOnce = 2000
	for ; count > 0; count -= atOnce {
		c.die(t, min(count, atOnce))
	}
}

// redrive begins a redrive of all letters, and returns the address of its page.
func (c *crowd) redrive(t *testing.T) string {
	t.Helper()
	s := &shop{t: t, server: c.server}
	return s.post("/redrive/run?filter=", url.Values{"reason": {"the port is open"}})
}

func since(began time.Time) time.Duration { return time.Since(began).Round(10 * time.Millisecond) }

// quantile returns a percentile.
func quantile(times []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[(len(sorted)-1)*percent/100].Round(time.Millisecond)
}

// Others work with the console while one client does not read, and then while many search.
func TestIncidentOfOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("-short fills no large store")
	}
	c := watched(t)
	c.dieMany(t, incidentLetters)
	alone := c.first(t)
	t.Logf("the first page, alone: %s", times(alone))
	t.Run("one does not read", func(t *testing.T) {
		c.deaf(t)
		t.Logf("the first page, watched while one client does not read: %s", times(c.looks(t)))
	})
	t.Run("many search", func(t *testing.T) {
		searched, end := c.search(t)
		pages := c.first(t)
		end()
		t.Logf("the first page, while %d search %d letters: %s; %d searches were opened and watched", incidentSearches, incidentLetters,
			times(pages), searched())
		if p99 := quantile(pages, 99); p99 > max(slowest, 2*quantile(alone, 99)) {
			t.Errorf("the p99 of the first page is %s, the limit is %s", p99, slowest)
		}
	})
}

// first asks for the first page again and again, and returns the times that it took.
func (c *crowd) first(t *testing.T) (took []time.Duration) {
	t.Helper()
	for range incidentAsked {
		took = append(took, c.ask(t.Context(), t, "/", "").took)
	}
	return took
}

// looks watches the first page while letters die.
func (c *crowd) looks(t *testing.T) (took []time.Duration) {
	t.Helper()
	version := "none"
	for range incidentAsked {
		c.die(t, 1)
		a := c.ask(t.Context(), t, "/", version)
		if took, version = append(took, a.took), a.version; a.status != http.StatusOK && a.status != http.StatusNoContent {
			t.Fatalf("status %d after %s", a.status, a.took)
		}
	}
	return took
}

// answered has what a client sees of an answer.
type answered struct {
	status  int
	took    time.Duration
	version string
}

// ask asks for a page, with the version that the client has, or "".
func (c *crowd) ask(ctx context.Context, t *testing.T, path, version string) answered {
	ctx, end := context.WithTimeout(ctx, browser.Patience)
	defer end()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server.URL+path, nil)
	if err != nil {
		t.Error(err)
		return answered{}
	}
	if version != "" {
		r.Header.Set("Nixie-Live", version)
	}
	began := time.Now()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		return answered{version: version}
	}
	_, _ = io.Copy(io.Discard, answer.Body) // it is only timed
	_ = answer.Body.Close()
	if newer := answer.Header.Get("Nixie-Live"); newer != "" {
		version = newer
	}
	return answered{answer.StatusCode, time.Since(began), version}
}

// deaf asks for the first page until nothing more can be sent, and reads nothing.
func (c *crowd) deaf(t *testing.T) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(c.server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	const requests = 2000 // of some KiB each: more than a system takes for a connection
	ask := "GET / HTTP/1.1\r\nHost: localhost\r\nNixie-Live: none\r\n\r\n"
	err = conn.SetWriteDeadline(time.Now().Add(time.Second))
	if err == nil {
		_, err = io.WriteString(conn, strings.Repeat(ask, requests))
	}
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) { // the server reads no more than it answers
		t.Fatal(err)
	}
}

// search lets many open a search each and watch it, again and again, while letters die. It returns
// how often they did, and a function that ends them.
func (c *crowd) search(t *testing.T) (answers func() int64, end func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var count atomic.Int64
	for i := range incidentSearches {
		all.Go(func() {
			address := fmt.Sprintf("/letters?filter=text:none-%d", i)
			for ctx.Err() == nil {
				c.ask(ctx, t, address, "")
				c.ask(ctx, t, address, "none")
				count.Add(1)
			}
		})
	}
	all.Go(func() {
		for ctx.Err() == nil {
			c.die(t, 1)
		}
	})
	return count.Load, func() { stop(); all.Wait() }
}

func times(took []time.Duration) string {
	return fmt.Sprintf("median %s, p99 %s, most %s", quantile(took, 50), quantile(took, 99), slices.Max(took).Round(time.Millisecond))
}
