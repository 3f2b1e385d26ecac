package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/console/browser"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store/sqlite"
)

// Bounds of a page that is watched.
const (
	deathsPerSecond = 500
	maxGrowth       = 8 << 20 // bytes of the heap of the tab
)

// TestWatchedPageStaysStill lets letters die while a row is under the pointer: the row does not
// move, the page says that there is news, and it shows them when the pointer leaves. The memory of
// the tab stays flat.
func TestWatchedPageStaysStill(t *testing.T) {
	t.Parallel()
	b := browser.For(t)
	proof.Run(t, "console-live", func(t *testing.T, _ uint64) int {
		seconds := proof.Count("console-live")
		s := watched(t)
		tab := b.Open(s.server.URL, browser.Look{})
		defer tab.Close()
		tab.Go("/letters", http.StatusOK)
		const row = `document.querySelectorAll("main .scroll tbody tr")[4]`
		tab.Point(row + ".querySelector('td:nth-child(3)')")
		const at = `((e) => e.innerText.split("\t")[0] + " at " + e.getBoundingClientRect().y)(` + row + ")"
		before, began, heap := browser.Ask[string](tab, at), time.Now(), tab.Heap()
		died := s.dieFor(t, time.Duration(seconds)*time.Second, func() {
			if now := browser.Ask[string](tab, at); now != before {
				t.Fatalf("the row under the pointer was %q and is %q", before, now)
			}
		})
		tab.Wait(browser.Text("#live", "change"))
		if now := browser.Ask[string](tab, at); now != before {
			t.Errorf("the row under the pointer was %q and is %q", before, now)
		}
		tab.Point(browser.Text("footer", ""))
		tab.Wait(at + " !== " + browser.Quote(before))
		grown := tab.Heap() - heap
		if grown > maxGrowth {
			t.Errorf("the memory of the tab grew by %.0f bytes, the limit is %d", grown, maxGrowth)
		}
		clean(t, tab)
		t.Logf("%d letters died in %s; the memory of the tab grew by %.0f KiB", died, time.Since(began).Round(time.Second), grown/1024)
		return seconds
	})
}

// Between two looks at the store a page tells its age, and when the console is away. Where nothing
// changed it is as new as one that is not shown yet.
func TestAnOldPageSaysHowOldItIs(t *testing.T) {
	t.Parallel()
	c := watched(t)
	tab := browser.For(t).Open(c.server.URL, browser.Look{Width: 390, Height: 800})
	defer tab.Close()
	tab.Go("/letters", http.StatusOK)
	tab.Wait(browser.Text("#live", "Live, p pauses · as of "))
	tab.Point("document.querySelector('main .scroll tbody tr')")
	tab.Wait("document.querySelector('#live').innerText === 'Live, p pauses'")
	clean(t, tab)
	c.server.CloseClientConnections()
	c.server.Close()
	tab.Wait(browser.Text("#live", "The console does not answer; this asks again · as of "))
}

func TestAPageOfWhatIsGoneSaysSo(t *testing.T) {
	t.Parallel()
	c := watched(t)
	tab := browser.For(t).Open(c.server.URL, browser.Look{})
	defer tab.Close()
	const cause = "v2-timeout: step 3"
	tab.Go("/group?fingerprint="+url.QueryEscape(cause), http.StatusOK)
	tab.Expect(http.StatusNotFound)
	work := &office.OperationRequest{
		Event: "purge", Filter: nixie.Filter{Fingerprints: []string{cause}, Statuses: []nixie.Status{nixie.StatusOpen}}, Reason: "asked",
	}
	op, err := c.office.Begin(t.Context(), work)
	if err == nil {
		_, err = c.office.Run(t.Context(), op.Operation, work)
	}
	if err != nil {
		t.Fatal(err)
	}
	tab.Wait(browser.Text("#live", "What this shows is gone"))
	clean(t, tab)
}

// watched is a console over a store in a file, with the real clock.
func watched(t *testing.T) *crowd {
	t.Helper()
	c := &crowd{}
	var err error
	if c.store, err = sqlite.Open(filepath.Join(t.TempDir(), "live.db"), sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, c.store.Close()) })
	if c.office, err = office.New(office.Config{Store: c.store, Actor: "ann"}); err != nil {
		t.Fatal(err)
	}
	c.die(t, 100)
	c.server = httptest.NewServer(console.Handler(c.office, console.Options{}))
	t.Cleanup(c.server.Close)
	return c
}

// crowd is a store in which many letters die.
type crowd struct {
	store  *sqlite.Store
	office *office.Office
	server *httptest.Server
	next   atomic.Int32
}

// die adds letters that died just now.
func (c *crowd) die(t *testing.T, count int) {
	t.Helper()
	list := make([]nixie.Letter, count)
	for i := range list {
		n := int(c.next.Add(1))
		l := letter(n, fmt.Sprintf("queue-%d", n%5), fmt.Sprintf("timeout: step %d", n%10), "no answer", 0)
		l.ID, l.Message.ID, l.DiedAt = nixie.ID{}, nixie.ID{}, time.Now()
		list[i] = l
	}
	_, errs := c.store.Adopt(t.Context(), list, "ann", "")
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// dieFor lets letters die for some time, and calls look a few times a second. It returns how many
// died.
func (c *crowd) dieFor(t *testing.T, length time.Duration, look func()) (died int) {
	t.Helper()
	const ticks = 5 // a second
	ctx, end := context.WithTimeout(t.Context(), length)
	defer end()
	tick := time.NewTicker(time.Second / ticks)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.die(t, deathsPerSecond/ticks)
			died += deathsPerSecond / ticks
			look()
		case <-ctx.Done():
			return died
		}
	}
}
