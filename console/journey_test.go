package console_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/console/browser"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/worker"
)

// Bounds of the way from the first page to the end of an outage.
const (
	journeyLetters = 40
	maxActions     = 9
	namedWithin    = 5 * time.Second // of the opening of the console, the cause is on the screen
)

// outage is a shop whose database does not answer until it is repaired: a worker over a store in a
// file buries what fails.
type outage struct {
	store    *sqlite.Store
	office   *office.Office
	server   *httptest.Server
	repaired atomic.Bool
}

func strike(t *testing.T) *outage {
	t.Helper()
	o := &outage{}
	var err error
	if o.store, err = sqlite.Open(filepath.Join(t.TempDir(), "journey.db"), sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, o.store.Close()) })
	if o.office, err = office.New(office.Config{Store: o.store, Actor: "ann"}); err != nil {
		t.Fatal(err)
	}
	for n := range journeyLetters {
		n += 1000
		m := nixie.Message{Queue: "orders", Type: "ship", Key: fmt.Sprintf("order-%d", n), Body: fmt.Appendf(nil, `{"order": %d}`, n)}
		if _, err := o.store.Enqueue(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	p, err := policy.New(policy.Config{MaxAttempts: 2, Backoff: policy.Backoff{Base: -1}})
	if err != nil {
		t.Fatal(err)
	}
	w, err := worker.New(worker.Config{
		Breaker: policy.BreakerRules{Failures: -1}, // all have to die
		Source:  store.NewSource(o.store, "orders"), Policy: p, Logger: slog.New(slog.DiscardHandler),
		Handler: nixie.HandlerFunc(func(_ context.Context, d *nixie.Delivery) error {
			if o.repaired.Load() {
				return nil
			}
			return nixie.WithReason(fmt.Errorf("%s: dial tcp 10.0.4.7:5432: connection refused", d.Key), nixie.ReasonTransportUnavailable)
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() { end(); closed(t, <-ended) })
	o.server = httptest.NewServer(console.Handler(o.office, console.Options{Title: "Shop"}))
	t.Cleanup(o.server.Close)
	return o
}

func closed(t *testing.T, err error) {
	if err != nil {
		t.Error(err)
	}
}

// trip is a person at work, with a mouse or with a keyboard alone.
type trip struct {
	*browser.Tab
	t       *testing.T
	keys    bool
	actions int
	began   time.Time
	last    time.Time
}

// step tells what was reached and when, and keeps a picture of it.
func (p *trip) step(what string) {
	p.t.Helper()
	now := time.Now()
	p.t.Logf("%2d actions, %6s in all, %6s more: %s", p.actions, now.Sub(p.began).Round(time.Millisecond),
		now.Sub(p.last).Round(time.Millisecond), what)
	keep(p.t, p.Tab, fmt.Sprintf("%s-%02d", filepath.Base(p.t.Name()), p.actions))
	p.last = time.Now()
}

// picturesVar names the folder for pictures.
const picturesVar = "NIXIE_SCREENSHOTS"

// keep writes a picture, if the environment names a folder for it.
func keep(t *testing.T, tab *browser.Tab, name string) {
	folder := os.Getenv(picturesVar)
	if folder == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), tab.Picture(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// follow goes to the page that an element leads to.
func (p *trip) follow(element string) {
	p.actions++
	if !p.keys {
		p.Follow(element)
		return
	}
	p.reach(element)
	p.Submit(browser.KeyEnter)
}

// send writes a text into a field and sends its form.
func (p *trip) send(field, text string) {
	p.actions++
	field = "document.querySelector(" + field + ")"
	if p.keys {
		p.reach(field)
	} else {
		p.Click(field)
	}
	p.Press(text)
	p.Submit(browser.KeyEnter)
}

// maxTabs limits how often the tab key is pressed to reach an element.
const maxTabs = 120

// reach presses the tab key until an element has the focus, which has to be seen.
func (p *trip) reach(element string) {
	p.t.Helper()
	p.Wait(element)
	for range maxTabs {
		p.Press(browser.KeyTab)
		if browser.Ask[bool](p.Tab, "document.activeElement === "+element) {
			if !browser.Ask[bool](p.Tab, `getComputedStyle(document.activeElement).outlineStyle !== "none"`) {
				p.t.Errorf("%s has the focus, and nothing shows it", element)
			}
			return
		}
	}
	p.t.Fatalf("the tab key does not reach %s", element)
}

func TestJourney(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]bool{"mouse": false, "keyboard": true} {
		t.Run(name, func(t *testing.T) {
			b, o := browser.For(t), strike(t)
			p := &trip{Tab: b.Open(o.server.URL, browser.Look{}), t: t, keys: keys}
			defer p.Close()
			o.die(t)
			p.began = time.Now()
			p.last = p.began
			p.understand()
			p.redrive(o)
			if p.actions > maxActions {
				t.Errorf("%d actions from the opening to the end of the outage, the limit is %d", p.actions, maxActions)
			}
			p.follow(browser.Text("nav a", "Audit"))
			p.Wait(browser.Text("td", "the database is back"))
			p.step("the audit says who did what, and why")
			clean(t, p.Tab)
		})
	}
}

// die waits until all messages are dead.
func (o *outage) die(t *testing.T) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		q, err := o.office.Queue(t.Context(), "orders")
		if err != nil {
			t.Fatal(err)
		}
		if q.Dead == journeyLetters {
			return
		}
		<-tick.C
	}
}

// understand goes from the first page to the difference of two attempts.
func (p *trip) understand() {
	p.actions++
	p.Go("/", 200)
	p.Wait(browser.Text(".alerts a", "connection refused"))
	p.step("the first page names the cause")
	if took := time.Since(p.began); took > namedWithin {
		p.t.Errorf("the cause is named after %s, the limit is %s", took, namedWithin)
	}
	p.follow(browser.Text(".alerts a", "connection refused"))
	p.Wait(browser.Text(".sample", "10.0.4.7"))
	p.step("its group shows an example, with the parts that differ marked")
	p.follow(`document.querySelector("table.list tbody a")`)
	p.Wait(browser.Text(".story", "failed"))
	p.step("a letter tells its story")
	p.follow(browser.Text("button", "Compare"))
	p.Wait(`document.querySelector(".compared")`)
	p.step("its attempts are compared")
}

// redrive sends ten back, which die again, and the others when the cause is gone.
func (p *trip) redrive(o *outage) {
	p.follow(browser.Text("a", "Redrive all of this cause"))
	p.Wait(browser.Text("button", fmt.Sprintf("Redrive %d letters", journeyLetters)))
	p.step("a preview of them all")
	p.send(`"input[name=max]"`, "10")
	p.Wait(browser.Text("button", "Redrive 10 letters"))
	p.step("a preview of ten")
	p.send(`"input[name=reason]"`, "does it answer again?")
	p.Wait(figure("bad", "died again", 10))
	p.step("all ten died again")
	o.repaired.Store(true)
	p.follow(browser.Text("a", "redrive what is left"))
	p.Wait(browser.Text("button", fmt.Sprintf("Redrive %d letters", journeyLetters)))
	p.step("the cause is gone, and this is a preview of what is left")
	p.send(`"input[name=reason]"`, "the database is back")
	p.Wait(figure("good", "succeeded", journeyLetters))
	p.step("all succeeded")
}

// figure is an expression of a count on the page of an operation.
func figure(tone, name string, count int) string {
	return fmt.Sprintf(`[...document.querySelectorAll(".figures .%s")].find((e) => e.innerText.match(/%s\s+%d$/))`, tone, name, count)
}
