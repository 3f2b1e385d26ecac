package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/console/browser"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/office"
)

// TestScreens keeps a picture of every page of the demo, light and dark, on a wide screen, a narrow
// one and a phone: make screenshots.
func TestScreens(t *testing.T) {
	if os.Getenv(picturesVar) == "" {
		t.Skip("make screenshots keeps pictures")
	}
	b, handler := browser.For(t), demo(t)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	pages := append(crawl(t, handler, 1), "/letters?filter=queue:orders+raeson:timeout", "/letter/unknown",
		"/messages?stage=running", "/messages?stage=scheduled", "/messages?stage=blocked",
		"/policies?text=dial+tcp+10.0.4.7:443:+connection+refused&attempt=2")
	for _, look := range []browser.Look{
		{Width: 1440, Height: 900}, {Width: 1440, Height: 900, Dark: true},
		{Width: 390, Height: 844}, {Width: 390, Height: 844, Dark: true},
		{Width: 1024, Height: 720}, {Width: 1024, Height: 720, Dark: true}, // make pictures has them for the documents
	} {
		tab := b.Open(server.URL, look)
		for i, path := range pages {
			tab.Go(path, 0)
			kind, _, _ := strings.Cut(browser.Kind(path), "/")
			scheme := "light"
			if look.Dark {
				scheme = "dark"
			}
			keep(t, tab, fmt.Sprintf("%02d-%s-%d-%s", i, kind, look.Width, scheme))
		}
		tab.Close()
	}
	t.Logf("%d pages, light and dark, at three widths", len(pages))
}

// demo is the shop of nixie serve --demo, once it has a blocked stream and retries.
func demo(t *testing.T) http.Handler {
	t.Helper()
	d, err := app.NewDemo(t.Context(), time.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- d.Run(ctx) }()
	t.Cleanup(func() {
		end()
		closed(t, <-ended)
		closed(t, d.Close())
	})
	clerk, err := office.New(office.Config{Store: d.Store, Actor: "console"})
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		stalls, err := clerk.Stalled(t.Context(), nil, 0)
		q, wrong := clerk.Queue(t.Context(), "payments")
		if err != nil || wrong != nil {
			t.Fatal(err, wrong)
		}
		if len(stalls) >= 2 && q.Scheduled > 0 {
			return console.Handler(clerk, console.Options{Title: "Shop", Banner: "A demo: nothing here is real."})
		}
		<-tick.C
	}
}
