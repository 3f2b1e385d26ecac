package console_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/console/browser"
)

// furnished is a console with something on each of its pages: causes, a blocked stream, messages
// that are retried, a paused queue, and an operation.
func furnished(t *testing.T) *shop {
	t.Helper()
	return furnishedWith(t, console.Options{})
}

func furnishedWith(t *testing.T, opts console.Options) *shop {
	t.Helper()
	opts.Run, opts.Title, opts.Banner = here, "Shop", "This is a test."
	list := healthy()
	for i := range 60 {
		cause := fmt.Sprintf("cause %d of <n>", i%30)
		list = append(list, letter(20+i, fmt.Sprintf("queue-%d", i%7), "timeout: "+cause, cause, time.Duration(i)*11*time.Minute))
	}
	s := open(t, opts, list...)
	s.order("ordered")
	for i := range 8 {
		m := nixie.Message{Queue: "ordered", Type: "ship", Key: fmt.Sprintf("first-%d", i), Stream: fmt.Sprintf("customer-%d", i/2)}
		if _, err := s.store.Enqueue(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	s.work("ordered", nixie.Permanent(errors.New("refused")))
	if _, err := s.store.Enqueue(t.Context(), nixie.Message{Queue: "mail", Type: "send", Key: "later"}); err != nil {
		t.Fatal(err)
	}
	s.work("mail", errors.New("smtp is slow"))
	s.post("/queue/pause?name=queue-1", url.Values{"reason": {"the port is shut"}})
	s.post("/redrive/run?filter=queue:queue-2", url.Values{"reason": {"a first try"}, "max": {"3"}})
	s.work("queue-2", errors.New("refused"))
	return s
}

func TestPagesHaveNoBarriers(t *testing.T) {
	t.Parallel()
	axe, b, s := browser.Axe(t), browser.For(t), furnished(t)
	pages, kept := crawl(t, s.server.Config.Handler, 1), 0
	for _, dark := range []bool{false, true} {
		tab := b.Open(s.server.URL, browser.Look{Dark: dark})
		for _, path := range pages {
			tab.Go(path, http.StatusOK)
			barriers := tab.Barriers(axe)
			for _, found := range barriers.Found {
				t.Errorf("%s, dark %t: %s", path, dark, found)
			}
			kept += barriers.Kept
		}
		clean(t, tab)
		tab.Close()
	}
	t.Logf("%d pages of %d kinds, light and dark: %d rules kept", len(pages), len(console.Patterns()), kept)
}

// Bounds of pages over a slow network.
const (
	slow        = 400_000 / 8 // bytes a second
	firstWithin = 5 * time.Second
	maxFirst    = 60 << 10 // bytes of a first page with its assets, as they are sent
)

// behindTheEdge lists the lists of a page that are wider than the screen, and a header that takes
// much of it.
const behindTheEdge = `(() => {
	const found = [];
	for (const e of document.querySelectorAll("main .scroll, main .spreads, main form"))
		if (e.scrollWidth > e.clientWidth + 1 && !e.querySelector(".compared"))
			found.push(e.scrollWidth - e.clientWidth + " px of " + e.innerText.slice(0, 60));
	const height = document.querySelector("header").offsetHeight;
	if (height > 110) found.push("much behind a header of " + height + " px");
	return found;
})()`

// The bar for the selected letters is there when some are.
func TestBarOfTheSelected(t *testing.T) {
	t.Parallel()
	b, s := browser.For(t), open(t, console.Options{}, healthy()...)
	for _, look := range []browser.Look{{}, {Width: 390, Height: 844, NoScripts: true}} {
		tab := b.Open(s.server.URL, look)
		tab.Go("/letters", http.StatusOK)
		const shown = `document.querySelector("form > .bulk").checkVisibility()`
		if browser.Ask[bool](tab, shown) {
			t.Error("nothing is selected, and it is there")
		}
		tab.Click(`document.querySelector("input[name=id]")`)
		tab.Wait(shown)
		tab.Click(`document.querySelector("input[name=id]")`)
		tab.Wait("!" + shown)
		clean(t, tab)
		tab.Close()
	}
}

func TestPagesWorkWithoutScriptsOnAPhone(t *testing.T) {
	t.Parallel()
	b, s := browser.For(t), furnished(t)
	pages := crawl(t, s.server.Config.Handler, 2)
	tab := b.Open(s.server.URL, browser.Look{Width: 360, Height: 740, NoScripts: true, Rate: slow})
	defer tab.Close()
	began := time.Now()
	tab.Go(pages[0], http.StatusOK)
	first, seen := time.Since(began), tab.Seen()
	t.Logf("first page at 400 kbit/s: %s, %.0f bytes in %d requests", first.Round(time.Millisecond), seen.Bytes, seen.Requests)
	if first > firstWithin || seen.Bytes > maxFirst {
		t.Errorf("the limits are %s and %d bytes", firstWithin, maxFirst)
	}
	for _, path := range pages {
		tab.Go(path, http.StatusOK)
		inspect(t, tab, path)
		if text := browser.Ask[string](tab, `document.querySelector("main").innerText`); len(text) < 40 {
			t.Errorf("%s says only %q", path, text)
		}
		for _, hidden := range browser.Ask[[]string](tab, behindTheEdge) {
			t.Errorf("%s hides %s", path, hidden)
		}
	}
	// What a form asks for is done without scripts too.
	i := slices.IndexFunc(pages, func(path string) bool { return len(path) > 8 && path[:7] == "/queue?" })
	tab.Go(pages[i], http.StatusOK)
	tab.Click(`document.querySelector("main input[name=reason]")`)
	tab.Press("a test")
	tab.Follow(browser.Text("main button", ""))
	tab.Wait(browser.Text("main", "a test"))
	clean(t, tab)
}
