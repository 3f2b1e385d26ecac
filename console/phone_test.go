package console_test

import (
	"net/http"
	"testing"

	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/console/browser"
)

// phone is the screen of the targets of a phone.
const phoneWidth, phoneHeight, lettersOnAScreen = 390, 844, 8

// On a phone eight letters are on the first screen, each with its cause; the menu is one line that
// opens without scripts.
func TestPhoneShowsEightLettersWithTheirCauses(t *testing.T) {
	t.Parallel()
	b, s := browser.For(t), furnished(t)
	for _, noScripts := range []bool{true, false} {
		tab := b.Open(s.server.URL, browser.Look{Width: phoneWidth, Height: phoneHeight, NoScripts: noScripts})
		tab.Go("/letters", http.StatusOK)
		seen := browser.Ask[int](tab, `[...document.querySelectorAll(".letters tbody tr")].filter((row) => {
			const cause = row.querySelector("td.wide a").getBoundingClientRect(), of = row.getBoundingClientRect();
			return cause.width > 100 && cause.height > 12 && cause.left >= 0 && cause.right <= innerWidth && of.bottom <= innerHeight;
		}).length`)
		if t.Logf("%d letters on the first screen", seen); seen < lettersOnAScreen {
			t.Errorf("%d letters are on the first screen with their causes, want %d", seen, lettersOnAScreen)
		}
		if height := browser.Ask[float64](tab, `document.querySelector("header").offsetHeight`); height > 56 {
			t.Errorf("the header is %g px high: more than one line", height)
		}
		const shown = `document.querySelector(".menu nav a").checkVisibility({ contentVisibilityAuto: true, visibilityProperty: true })`
		if browser.Ask[bool](tab, shown) {
			t.Error("the menu is open before anyone opened it")
		}
		tab.Click(`document.querySelector(".menu summary")`)
		tab.Wait(shown)
		tab.Follow(browser.Text(".menu nav a", "Audit"))
		tab.Wait(browser.Text("h1", "Audit"))
		clean(t, tab)
		tab.Close()
	}
}

// On a wide screen the menu is there without being opened.
func TestMenuOfAWideScreen(t *testing.T) {
	t.Parallel()
	b, s := browser.For(t), open(t, console.Options{}, healthy()...)
	tab := b.Open(s.server.URL, browser.Look{NoScripts: true})
	defer tab.Close()
	tab.Go("/", http.StatusOK)
	tab.Follow(browser.Text(".menu nav a", "Messages"))
	tab.Wait(browser.Text("h1", "Messages"))
	if browser.Ask[bool](tab, `document.querySelector(".menu summary").checkVisibility()`) {
		t.Error("what opens the menu is there, and nothing is to open")
	}
	clean(t, tab)
}
