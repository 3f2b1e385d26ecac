package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/console/browser"
)

// away is the zone of the reader in these tests: half an hour off, and on the other side of UTC.
const away = "America/St_Johns"

// strayTimes lists the times of a page that are in another zone than that of its reader, and texts
// and titles with a time of day that no script can write again.
const strayTimes = `(() => {
	const found = [], time = /\d{4}-\d\d-\d\d[ T]\d\d:\d\d/;
	const forms = { dateStyle: "short", timeStyle: "medium", hourCycle: "h23" };
	const here = new Intl.DateTimeFormat("sv-SE", { ...forms, timeZone: "` + away + `" });
	for (const e of document.querySelectorAll("time")) {
		const want = here.format(new Date(e.dateTime)), shown = e.textContent;
		if (e.matches(".clock") && (shown.length < 16 || !want.startsWith(shown))) found.push(shown + " instead of " + want);
		if (!e.title.startsWith(want)) found.push("title " + e.title + " instead of " + want);
	}
	for (const e of document.querySelectorAll("[title]:not(time), [aria-label]"))
		for (const name of ["title", "aria-label"])
			if (time.test(e.getAttribute(name) ?? "")) found.push(name + " " + e.getAttribute(name));
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (texts.nextNode()) {
		const text = texts.currentNode;
		if (time.test(text.data) && !text.parentElement.closest("time")) found.push("text " + text.data);
	}
	if (!document.getElementById("zone").textContent.startsWith("` + away + `")) found.push("the zone is not named");
	return found;
})()`

// Every time of day is in the zone of who reads the page, on every page.
func TestTimesAreThoseOfTheReader(t *testing.T) {
	t.Parallel()
	b, s := browser.For(t), furnished(t)
	tab := b.Open(s.server.URL, browser.Look{Zone: away})
	defer tab.Close()
	for _, path := range append(crawl(t, s.server.Config.Handler, 1), "/letter/"+id(3).String()+"?a=1&b=2") {
		tab.Go(path, http.StatusOK)
		for _, found := range browser.Ask[[]string](tab, strayTimes) {
			t.Errorf("%s: %s", path, found)
		}
	}
	clean(t, tab)
}

// So are those of a page that has changed while it was open.
func TestTimesOfAPageThatChanges(t *testing.T) {
	t.Parallel()
	b, s := browser.For(t), watched(t)
	tab := b.Open(s.server.URL, browser.Look{Zone: away})
	defer tab.Close()
	tab.Go("/letters", http.StatusOK)
	tab.Wait(`document.querySelector("#live:not([hidden])")`)
	browser.Ask[bool](tab, `document.getElementById("main").isOld = true`)
	tab.Point(browser.Text("footer", "")) // nothing that is pointed at holds the change back
	s.die(t, 2)
	tab.Wait(`!document.getElementById("main").isOld`)
	for _, found := range browser.Ask[[]string](tab, strayTimes) {
		t.Error(found)
	}
	clean(t, tab)
}

// Without a script times are in the zone of the console, and the page says which that is.
func TestTimesWithoutScripts(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for zone, want := range map[*time.Location][]string{
		berlin:                           {"2026-05-04 14:00:00", "Europe/Berlin (UTC&#43;02:00)", `title="2026-05-04 13:50:00 +02:00"`},
		time.UTC:                         {"2026-05-04 12:00:00", `<span id="zone">UTC</span>`, `title="2026-05-04 11:50:00 +00:00"`},
		time.FixedZone("Here", -5*60*60): {"2026-05-04 07:00:00", "Here (UTC-05:00)", `title="2026-05-04 06:50:00 -05:00"`},
	} {
		s := open(t, console.Options{Zone: zone}, healthy()...)
		s.has("/letter/"+id(3).String(), want...)
		s.has("/queue?name=orders", `highest: 2 <time class="clock"`, want[0][:16]+"</time> </p>")
		if page := s.page(http.StatusOK, "/letter/"+id(3).String()); strings.Contains(page, `title="2026-05-04T`) {
			t.Errorf("%s: a title is in another zone:\n%s", zone, page)
		}
	}
}
