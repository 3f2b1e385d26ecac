package docs

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/console/browser"
)

// siteVar names the folder of the site that make site has made.
const siteVar = "NIXIE_SITE"

var (
	siteLink   = regexp.MustCompile(`\b(?:href|src|srcset)="([^"]*)"`)
	siteAnchor = regexp.MustCompile(`\b(?:id|name)="([^"]+)"`)
)

// TestSite follows every link of the site, and reads and searches it in a browser as files.
func TestSite(t *testing.T) {
	folder := os.Getenv(siteVar)
	if folder == "" {
		t.Skip("make site checks the site")
	}
	pages := sitePages(t, os.DirFS(folder))
	if len(pages) < 200 {
		t.Errorf("%d pages", len(pages))
	}
	links := 0
	for name, text := range pages {
		for _, m := range siteLink.FindAllStringSubmatch(text, -1) {
			links++
			if why := brokenOnSite(os.DirFS(folder), pages, name, m[1]); why != "" {
				t.Errorf("%s: %s: %s", name, m[1], why)
			}
		}
	}
	t.Logf("%d pages, %d links", len(pages), links)
	t.Run("browser", func(t *testing.T) { readSite(t, folder) })
}

func sitePages(t *testing.T, site fs.FS) map[string]string {
	t.Helper()
	pages := map[string]string{}
	err := fs.WalkDir(site, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".html" {
			return err
		}
		text, err := fs.ReadFile(site, name)
		pages[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// brokenOnSite says what is wrong with a link of a page, or nothing. Links to elsewhere are not
// followed.
func brokenOnSite(site fs.FS, pages map[string]string, name, to string) string {
	if scheme.MatchString(to) {
		return ""
	}
	file, anchor, _ := strings.Cut(to, "#")
	target := name
	if file != "" {
		target = path.Join(path.Dir(name), file)
	}
	switch _, err := fs.Stat(site, target); {
	case strings.HasPrefix(file, "/"):
		return "from a file it leads to the root of the machine"
	case err != nil:
		return err.Error()
	case anchor == "":
		return ""
	}
	for _, m := range siteAnchor.FindAllStringSubmatch(pages[target], -1) {
		if m[1] == anchor {
			return ""
		}
	}
	return target + " has no " + anchor
}

// readSite opens pages as files, on a wide screen and on a phone, light and dark. No page is wider
// than the screen or has a serious barrier, and the search finds, by keys alone.
func readSite(t *testing.T, folder string) {
	b := browser.For(t)
	axe := browser.Axe(t)
	pages := []string{
		"index.html", "docs/start/shell.html", "docs/start/operator.html", "docs/howto/alert.html",
		"docs/coming-from/river.html", "docs/cli/dlq-redrive.html", "docs/policy.html", "docs/decisions/readme.html",
	}
	for _, look := range []browser.Look{
		{Width: 1440, Height: 900}, {Width: 1440, Height: 900, Dark: true},
		{Width: 390, Height: 844}, {Width: 390, Height: 844, Dark: true},
	} {
		tab := b.Open("file://"+filepath.ToSlash(folder)+"/", look)
		for _, page := range pages {
			tab.Go(page, 0)
			if wide := browser.Ask[int64](tab, "document.documentElement.scrollWidth"); wide > look.Width {
				t.Errorf("%s is %d wide on a screen of %d", page, wide, look.Width)
			}
			if menu := browser.Ask[int64](tab, `document.querySelectorAll("nav a").length`); menu < 40 {
				t.Errorf("%s: the menu has %d pages", page, menu)
			}
			for _, barrier := range tab.Barriers(axe).Found {
				t.Errorf("%s, %d wide, dark %t: %s", page, look.Width, look.Dark, barrier)
			}
		}
		tab.Close()
	}
	tab := b.Open("file://"+filepath.ToSlash(folder)+"/", browser.Look{})
	defer tab.Close()
	for words, want := range map[string]string{
		"visibility timeout": "docs/concepts.html", "requeue": "docs/howto/redrive-slowly.html", "replay": "docs/howto/redrive-slowly.html",
		"dead letter queue": "docs/letters.html", "DLQ": "docs/letters.html", "dead-letter topic": "docs/dead-letter-topics.html",
		"sidekiq": "docs/coming-from/sidekiq.html", "nixie dlq redrive": "docs/cli/dlq-redrive.html",
		"poison": "docs/howto/find-a-killer.html", "docker": "docs/release.html", "exit codes": "docs/cli.html#exit-codes",
	} {
		tab.Go("docs/kafka.html", 0)
		tab.Press("/")
		tab.Wait(`document.activeElement.type === "search"`)
		browser.Ask[string](tab, `document.activeElement.value = ""`) // the protocol types the key as well
		tab.Press(words)
		tab.Wait(`document.querySelector("#found > *")`)
		tab.Press(browser.KeyDown)
		if found := browser.Ask[string](tab, `document.activeElement.href || found.textContent`); !strings.HasSuffix(found, want) {
			t.Errorf("search for %q finds %q first, not %s", words, found, want)
		}
	}
	tab.Submit(browser.KeyEnter)
	if at := browser.Ask[string](tab, "location.pathname"); !strings.HasPrefix(at, folder) || strings.HasSuffix(at, "kafka.html") {
		t.Errorf("Enter on what was found leads to %s", at)
	}
}
