// Package browser looks at pages in a Chromium without a window, as a person would, and counts what
// no page of ours may do: open a dialog, ask another host, break its policy of content, or write an
// error.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// Patience bounds a wait for a page.
const Patience = 20 * time.Second

// look is the time between two looks at a page that is waited for.
const look = 20 * time.Millisecond

// Browser is a Chromium that runs until Close.
type Browser struct {
	ctx   context.Context
	close []context.CancelFunc
	fail  func(...any)
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

// Start starts a program of Chromium. What goes wrong later is said to fail, which does not return.
func Start(ctx context.Context, program string, fail func(...any)) *Browser {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program),
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("no-proxy-server", true))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // it does not start as root otherwise
	}
	b := &Browser{fail: fail}
	allocator, free := chromedp.NewExecAllocator(context.WithoutCancel(ctx), options...)
	shown, end := chromedp.NewContext(allocator)
	b.ctx, b.close = shown, []context.CancelFunc{end, free}
	if err := chromedp.Do(shown); err != nil {
		b.Close()
		fail(fmt.Errorf("start the browser: %w", err))
	}
	return b
}

// Close ends the browser and removes its files.
func (b *Browser) Close() {
	for _, end := range b.close {
		end()
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
	ctx     context.Context
	close   context.CancelFunc
	browser *Browser
	origin  string // of the pages that it may show, such as http://127.0.0.1:8321

	mu       sync.Mutex
	seen     Seen
	expected int64 // status of a page that is no success
}

// Seen counts what a tab did since it was opened.
type Seen struct {
	Pages, Requests int
	Bytes           float64  // that came over the network
	Findings        []string // what no page may do
}

// Open opens a tab for the pages of an origin.
func (b *Browser) Open(origin string, as Look) *Tab {
	t := &Tab{browser: b, origin: origin}
	t.ctx, t.close = chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	if as.Width == 0 {
		as.Width, as.Height = 1440, 900
	}
	scheme := "light"
	if as.Dark {
		scheme = "dark"
	}
	t.do("open a tab", chromedp.Do(t.ctx))
	t.do("listen", chromedp.Listen(t.ctx, t.hear))
	call(t, audits.Enable, cdp.Empty{})
	call(t, network.Enable, network.EnableParams{})
	call(t, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: as.Width, Height: as.Height, DeviceScaleFactor: 1, Mobile: as.Width < 700,
	})
	call(t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	call(t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: as.NoScripts})
	if as.Zone != "" {
		call(t, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: as.Zone})
	}
	if as.Rate > 0 {
		call(t, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
			MatchedNetworkConditions: []*network.Conditions{{DownloadThroughput: as.Rate, UploadThroughput: as.Rate, Latency: 100}},
		})
	}
	call(t, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watch})
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
func (t *Tab) Close() { t.close() }

// Seen returns what the tab did so far.
func (t *Tab) Seen() Seen {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen
}

// call sends a command of the protocol of Chromium.
func call[P, R any](t *Tab, command cdp.Command[P, R], params P) R {
	answer, err := chromedp.Call(t.ctx, command, params)
	t.do(command.Method, err)
	return answer
}

func (t *Tab) do(what string, err error) {
	if err == nil {
		return
	}
	// The page may be gone as well.
	const shown = `location.href + ": " + document.querySelector("main")?.innerText.slice(0, 1000)`
	at, _ := chromedp.Run(t.ctx, chromedp.Evaluate[string](shown))
	t.browser.fail(fmt.Errorf("%s: %w; findings: %q; it shows %s", what, err, t.Seen().Findings, at))
}

// patient returns a context for a wait.
func (t *Tab) patient() (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.ctx, Patience)
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
	answer, err := chromedp.Run(ctx, chromedp.NavigateResponse(t.origin+path))
	t.do("open "+path, err)
	if answer != nil && answer.Status != status && (status != 0 || answer.Status >= http.StatusInternalServerError) {
		t.do("open "+path, fmt.Errorf("the status is %d, not %d", answer.Status, status))
	}
}

// Ask returns the value of an expression in JavaScript.
func Ask[T any](t *Tab, expression string) T {
	ctx, end := t.patient()
	defer end()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
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
		if is, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")")); err == nil && is {
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

// Press presses keys, one after the other: kb.Enter of chromedp, or characters.
func (t *Tab) Press(keys string) {
	ctx, end := t.patient()
	defer end()
	t.do("press keys", chromedp.Do(ctx, chromedp.KeyEvent(keys)))
}

// Point moves the mouse to the middle of an element, and returns where that is.
func (t *Tab) Point(element string) (x, y float64) {
	t.Wait(element)
	at := Ask[[]float64](t, `((e) => { e.scrollIntoView({ block: "nearest" }); const b = e.getBoundingClientRect();
		return [b.x + Math.min(b.width / 2, 200), b.y + b.height / 2]; })(`+element+")")
	t.do("point", chromedp.Do(t.ctx, chromedp.MouseEvent("mouseMoved", at[0], at[1])))
	return at[0], at[1]
}

// Click clicks an element with the mouse. What is in front of it gets the click.
func (t *Tab) Click(element string) {
	x, y := t.Point(element)
	t.do("click", chromedp.Do(t.ctx, chromedp.MouseClickXY(x, y)))
}

// Follow clicks an element that leads to another page, and waits until that has loaded.
func (t *Tab) Follow(element string) {
	x, y := t.Point(element)
	ctx, end := t.patient()
	defer end()
	_, err := chromedp.RunResponse(ctx, chromedp.MouseClickXY(x, y))
	t.do("follow "+element, err)
}

// Submit presses keys that lead to another page, and waits until that has loaded.
func (t *Tab) Submit(keys string) {
	ctx, end := t.patient()
	defer end()
	_, err := chromedp.RunResponse(ctx, chromedp.KeyEvent(keys))
	t.do("press keys to another page", err)
}

// Picture returns the whole page as a PNG.
func (t *Tab) Picture() []byte {
	whole := true
	size := Ask[[]float64](t, "[document.documentElement.clientWidth, document.documentElement.scrollHeight]")
	data := call(t, page.CaptureScreenshot, page.CaptureScreenshotParams{
		CaptureBeyondViewport: &whole, Clip: &page.Viewport{Width: size[0], Height: min(size[1], maxPicture), Scale: 1},
	})
	return data.Data
}

// Heap returns the bytes of the objects of the page, once garbage is collected.
func (t *Tab) Heap() float64 {
	call(t, heapprofiler.CollectGarbage, cdp.Empty{})
	return call(t, runtime.GetHeapUsage, cdp.Empty{}).UsedSize
}

// maxPicture limits the height of a picture.
const maxPicture = 4000

// address returns an address without what follows its path.
func address(url string) string {
	url, _, _ = strings.Cut(url, "?")
	return url
}
