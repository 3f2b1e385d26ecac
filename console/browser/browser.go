// Package browser looks at pages in a Chromium without a window, as a person would, and counts what
// no page of ours may do: open a dialog, ask another host, break its policy of content, or write an
// error.
package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// Patience bounds a wait for a page.
const Patience = 20 * time.Second

// look is the time between two looks at a page that is waited for.
const look = 20 * time.Millisecond

// Browser is a Chromium that runs until Close.
type Browser struct {
	ctx  context.Context
	wire *wire
	fail func(...any)
}

// For starts a browser that ends with a test. Where there is none the test is skipped, or fails.
func For(t testing.TB) *Browser {
	t.Helper()
	if testing.Short() {
		t.Skip("-short starts no browser")
	}
	b := Start(t.Context(), testservers.Program(t, testservers.Chromium), t.Fatal)
	t.Cleanup(b.Close)
	return b
}

// Start starts a program of Chromium. What goes wrong, also later, is said to fail, which does not
// return.
func Start(ctx context.Context, program string, fail func(...any)) *Browser {
	b := &Browser{ctx: context.WithoutCancel(ctx), fail: fail}
	var err error
	if b.wire, err = startWire(b.ctx, program); err != nil {
		fail(fmt.Errorf("start the browser: %w", err))
	}
	return b
}

// Close ends the browser and removes its files.
func (b *Browser) Close() {
	if err := b.wire.close(b.ctx); err != nil {
		b.fail(fmt.Errorf("end the browser: %w", err))
	}
}

// Look tells how a tab shows pages.
type Look struct {
	Width, Height int64 // default 1440 by 900
	Dark          bool
	NoScripts     bool
	Zone          string  // of the reader, such as America/St_Johns; default that of the machine
	Rate          float64 // bytes a second that the network carries; default without a limit
}

// Tab shows one page after the other. Its methods end the test when they cannot do what they say.
type Tab struct {
	browser *Browser
	origin  string // of the pages that it may show, such as http://127.0.0.1:8321
	space   string // of cookies and storage, its own
	frame   string // of its pages
	session string // of calls and events; empty until it is open

	mu       sync.Mutex
	seen     Seen
	expected int64 // status of a page that is no success
	statuses map[string]int64
	loaded   string        // the load that ended last
	loads    chan struct{} // closed when the next one ends
}

// Seen counts what a tab did since it was opened.
type Seen struct {
	Pages, Requests int
	Bytes           float64  // that came over the network
	Findings        []string // what no page may do
}

// Open opens a tab for the pages of an origin.
func (b *Browser) Open(origin string, as Look) *Tab {
	t := &Tab{browser: b, origin: origin, statuses: map[string]int64{}, loads: make(chan struct{})}
	if as.Width == 0 {
		as.Width, as.Height = 1440, 900
	}
	scheme := "light"
	if as.Dark {
		scheme = "dark"
	}
	made := call[struct{ BrowserContextID, TargetID, SessionID string }]
	t.space = made(t, "Target.createBrowserContext", nil).BrowserContextID
	t.frame = made(t, "Target.createTarget", object{"url": "about:blank", "browserContextId": t.space}).TargetID
	session := made(t, "Target.attachToTarget", object{"targetId": t.frame, "flatten": true}).SessionID
	b.wire.hear(session, t.hear)
	t.session = session
	for _, domain := range []string{"Audits", "Log", "Network", "Page", "Runtime"} {
		t.tell(domain+".enable", nil)
	}
	t.tell("Page.setLifecycleEventsEnabled", object{"enabled": true})
	t.tell("Emulation.setDeviceMetricsOverride", object{
		"width": as.Width, "height": as.Height, "deviceScaleFactor": 1, "mobile": as.Width < 700,
	})
	t.tell("Emulation.setEmulatedMedia", object{"features": []object{{"name": "prefers-color-scheme", "value": scheme}}})
	t.tell("Emulation.setScriptExecutionDisabled", object{"value": as.NoScripts})
	if as.Zone != "" {
		t.tell("Emulation.setTimezoneOverride", object{"timezoneId": as.Zone})
	}
	if as.Rate > 0 {
		t.tell("Network.emulateNetworkConditionsByRule", object{"matchedNetworkConditions": []object{{
			"urlPattern": "", "downloadThroughput": as.Rate, "uploadThroughput": as.Rate, "latency": 100,
		}}})
	}
	t.tell("Page.addScriptToEvaluateOnNewDocument", object{"source": watch})
	return t
}

// watch notes how far parts of a page moved while it was shown, but for moves that the user caused.
const watch = `window.nixieShift = 0;
new PerformanceObserver((list) => {
  for (const e of list.getEntries()) if (!e.hadRecentInput) window.nixieShift += e.value;
}).observe({ type: "layout-shift", buffered: true });`

// Shift is the expression of how far parts of a page moved, in its own measure; 0 is nothing.
const Shift = "window.nixieShift"

// Close closes the tab.
func (t *Tab) Close() {
	ctx, end := t.patient()
	defer end()
	_ = t.browser.wire.call(ctx, "", "Target.disposeBrowserContext", object{"browserContextId": t.space}, nil) // it may be gone
	t.browser.wire.hear(t.session, nil)
}

// Seen returns what the tab did so far.
func (t *Tab) Seen() Seen {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen
}

// call calls a method of the protocol of Chromium.
func call[R any](t *Tab, method string, params object) (result R) {
	ctx, end := t.patient()
	defer end()
	t.do("call", t.browser.wire.call(ctx, t.session, method, params, &result))
	return result
}

// tell calls a method whose result is not needed.
func (t *Tab) tell(method string, params object) { call[any](t, method, params) }

func (t *Tab) do(what string, err error) {
	if err == nil {
		return
	}
	// The page may be gone as well.
	const shown = `location.href + ": " + document.querySelector("main")?.innerText.slice(0, 1000)`
	ctx, end := t.patient()
	defer end()
	at, _ := evaluate[string](ctx, t, shown)
	t.browser.fail(fmt.Errorf("%s: %w; findings: %q; it shows %s", what, err, t.Seen().Findings, at))
}

// patient returns a context for a wait.
func (t *Tab) patient() (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.browser.ctx, Patience)
}

// Expect tells that pages may have a status that is no success. What a browser notes about it is
// no finding.
func (t *Tab) Expect(status int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expected = status
}

// Go opens a page, which has to have a status, and waits until it has loaded. A status of 0 is any
// but that of a defect.
func (t *Tab) Go(path string, status int64) {
	t.Expect(status)
	ctx, end := t.patient()
	defer end()
	var to struct{ LoaderID, ErrorText string }
	err := t.browser.wire.call(ctx, t.session, "Page.navigate", object{"url": t.origin + path}, &to)
	if err == nil && to.ErrorText != "" {
		err = errors.New(to.ErrorText)
	}
	if err == nil {
		err = t.await(ctx, func() bool { return t.loaded == to.LoaderID })
	}
	t.do("open "+path, err)
	t.mu.Lock()
	is, answered := t.statuses[to.LoaderID]
	t.mu.Unlock()
	if answered && is != status && (status != 0 || is >= http.StatusInternalServerError) {
		t.do("open "+path, fmt.Errorf("the status is %d, not %d", is, status))
	}
}

// await waits for a load that ends so that something is true.
func (t *Tab) await(ctx context.Context, is func() bool) error {
	for {
		t.mu.Lock()
		done, next := is(), t.loads
		t.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-next:
		case <-t.browser.wire.ended:
			return errors.New("the browser has ended")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// leave waits until the page has loaded that follows an act.
func (t *Tab) leave(what string, act func()) {
	t.mu.Lock()
	was := t.loaded
	t.mu.Unlock()
	act()
	ctx, end := t.patient()
	defer end()
	t.do(what, t.await(ctx, func() bool { return t.loaded != was }))
}

// evaluate returns the value of an expression, which may be a promise. One without a value gives
// the zero value.
func evaluate[T any](ctx context.Context, t *Tab, expression string) (value T, err error) {
	var got struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	params := object{"expression": expression, "returnByValue": true, "awaitPromise": true}
	if err := t.browser.wire.call(ctx, t.session, "Runtime.evaluate", params, &got); err != nil {
		return value, err
	}
	if e := got.ExceptionDetails; e != nil {
		return value, errors.New(e.Text + " " + e.Exception.Description)
	}
	if len(got.Result.Value) > 0 {
		err = json.Unmarshal(got.Result.Value, &value)
	}
	return value, err
}

// Ask returns the value of an expression in JavaScript.
func Ask[T any](t *Tab, expression string) T {
	ctx, end := t.patient()
	defer end()
	value, err := evaluate[T](ctx, t, expression)
	t.do(expression, err)
	return value
}

// Wait waits until an expression is true, also on a page that follows this one.
func (t *Tab) Wait(expression string) {
	ctx, end := t.patient()
	defer end()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		// An error is that of a page that is just being left.
		if is, err := evaluate[bool](ctx, t, "!!("+expression+")"); err == nil && is {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.do("wait for "+expression, ctx.Err())
			return
		}
	}
}

// Text is an expression of the first element that a selector names and that has a text.
func Text(selector, text string) string {
	return fmt.Sprintf("[...document.querySelectorAll(%s)].find((e) => e.innerText.includes(%s))", Quote(selector), Quote(text))
}

// Quote returns a text as an expression.
func Quote(s string) string {
	quoted, _ := json.Marshal(s) // a text always has one
	return string(quoted)
}

// Press presses keys, one after the other: characters, or [KeyEnter] and others.
func (t *Tab) Press(keys string) {
	for _, r := range keys {
		down, up := press(r)
		t.tell("Input.dispatchKeyEvent", down)
		t.tell("Input.dispatchKeyEvent", up)
	}
}

// Point moves the mouse to the middle of an element, and returns where that is.
func (t *Tab) Point(element string) (x, y float64) {
	t.Wait(element)
	at := Ask[[]float64](t, `((e) => { e.scrollIntoView({ block: "nearest" }); const b = e.getBoundingClientRect();
		return [b.x + Math.min(b.width / 2, 200), b.y + b.height / 2]; })(`+element+")")
	t.mouse("mouseMoved", at[0], at[1])
	return at[0], at[1]
}

func (t *Tab) mouse(event string, x, y float64) {
	params := object{"type": event, "x": x, "y": y}
	if event != "mouseMoved" {
		params["button"], params["clickCount"] = "left", 1
	}
	t.tell("Input.dispatchMouseEvent", params)
}

// Click clicks an element with the mouse. What is in front of it gets the click.
func (t *Tab) Click(element string) {
	x, y := t.Point(element)
	t.mouse("mousePressed", x, y)
	t.mouse("mouseReleased", x, y)
}

// Follow clicks an element that leads to another page, and waits until that has loaded.
func (t *Tab) Follow(element string) { t.leave("follow "+element, func() { t.Click(element) }) }

// Submit presses keys that lead to another page, and waits until that has loaded.
func (t *Tab) Submit(keys string) {
	t.leave("press keys to another page", func() { t.Press(keys) })
}

// Picture returns the whole page as a PNG.
func (t *Tab) Picture() []byte {
	size := Ask[[]float64](t, "[document.documentElement.clientWidth, document.documentElement.scrollHeight]")
	return call[struct{ Data []byte }](t, "Page.captureScreenshot", object{"captureBeyondViewport": true,
		"clip": object{"x": 0, "y": 0, "width": size[0], "height": min(size[1], maxPicture), "scale": 1}}).Data
}

// Heap returns the bytes of the objects of the page, once garbage is collected.
func (t *Tab) Heap() float64 {
	t.tell("HeapProfiler.collectGarbage", nil)
	return call[struct{ UsedSize float64 }](t, "Runtime.getHeapUsage", nil).UsedSize
}

// maxPicture limits the height of a picture.
const maxPicture = 4000

// address returns an address without what follows its path.
func address(url string) string {
	url, _, _ = strings.Cut(url, "?")
	return url
}
