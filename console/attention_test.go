package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// ailing is a store that tells how it is.
type ailing struct {
	*memory.Store
	health store.Health
}

func (a *ailing) Features() store.Features {
	f := a.Store.Features()
	f.Inspect = func(context.Context) (store.Health, error) { return a.health, nil }
	return f
}

// alerts are the title, text and age of what a first page says needs attention.
var alerts = regexp.MustCompile(`<strong>([^<]*)</strong> <span><bdi>([^<]*)</bdi></span> <small>(?:<time[^>]*>)?([^<]*)<`)

// What needs attention comes in an order, has an age each, and says nothing twice.
func TestOrderOfWhatNeedsAttention(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{Run: here}, healthy()...)
	sick := &ailing{Store: s.store, health: store.Health{
		Now: noon, Latest: noon.Add(time.Hour), Free: 1 << 20, Reserve: 64 << 20,
		Durability: []store.Setting{{Name: "synchronous", Value: "OFF", Want: "FULL"}},
		Owners:     []store.Owner{{Name: "host:1", Alive: true}},
	}}
	breaker, err := json.Marshal(store.Breaker{Owner: "host:1", Queue: "mail", Type: "send", Reason: nixie.ReasonDependency, State: "open",
		Until: noon.Add(30 * time.Second), Since: noon.Add(-time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.Features().Documents.Write(t.Context(), store.Writing{Changes: []store.DocumentChange{
		{DocumentKey: store.DocumentKey{Space: "breaker", Key: "1"}, Verb: store.PutDocument, Value: breaker}}}); err != nil {
		t.Fatal(err)
	}
	var list []nixie.Letter
	for n := range 1200 {
		list = append(list, letter(50+n, "orders", "validation: of many", "of many", time.Minute))
	}
	for n := range 6 {
		list = append(list, letter(10+n, "orders", "auth: it grows", "it grows", time.Duration(n)*20*time.Minute))
	}
	if _, errs := s.office.Adopt(t.Context(), list, "the test"); errs[0] != nil {
		t.Fatal(errs[0])
	}
	s.order("ordered")
	first := nixie.Message{Queue: "ordered", Type: "ship", Key: "first", Stream: "customer"}
	behind := nixie.Message{Queue: "ordered", Type: "ship", Key: "second", Stream: "customer"}
	others := []nixie.Message{{Queue: "exports"}, {Queue: "mail", Type: "send"}}
	if _, err := s.store.Enqueue(t.Context(), append(others, first, behind)...); err != nil {
		t.Fatal(err)
	}
	s.work("ordered", nixie.Permanent(fmt.Errorf("refused")))
	if _, err := s.office.Pause(t.Context(), []string{"exports"}, "the warehouse moves"); err != nil {
		t.Fatal(err)
	}
	clerk, err := office.New(office.Config{Store: sick, Actor: "ann", Clock: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	s.server = httptest.NewServer(console.Handler(clerk, console.Options{Clock: func() time.Time { return noon }, Zone: time.UTC}))
	t.Cleanup(s.server.Close)
	page := s.page(http.StatusOK, "/")
	var got []string
	for _, a := range alerts.FindAllStringSubmatch(page, -1) {
		got = append(got, a[1]+" | "+a[2]+" | "+a[3])
	}
	want := []string{
		"durability | store has synchronous OFF instead of FULL: commits may be lost with the power: open it with nixie only | now",
		"disk full | disk has 1 MiB free, less than the reserve of 64 MiB: new messages are refused: free some space | now",
		"breaker | mail: host:1 holds back messages of type send after failures of dependency: its breaker is open for " +
			"30s more | 1 h 00 min",
		"blocked | ordered: 1 stream blocked by a dead message, 1 message waiting, one of them by refused | now",
		"new | 1\u202f200 letters: validation: of many | 1 min",
		"new | 2 letters: timeout: order &lt;n&gt;: no answer | 20 min",
		"new | 1 letter: handler: refused | now",
		"clock | the newest record is 1h0m0s ahead of the clock: set the clock of this machine right | now",
		"paused | exports: 1 message waiting: the warehouse moves, ann | now",
		"unasked | mail: 1 message, and no worker has ever asked the queue for any | now",
		"growing | 4 of 6 letters died in the last hour: auth: it grows | 1 h 40 min",
	}
	if !slices.Equal(got, want) {
		for i := range max(len(got), len(want)) {
			t.Errorf("%d\n got %q\nwant %q", i, get(got, i), get(want, i))
		}
	}
}

func get(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "nothing"
}

// Many queues that stand still leave room for the causes, and the page says how many there are.
func TestManyStopsLeaveRoomForCauses(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{Run: here}, healthy()...)
	for i := range 40 {
		queue := fmt.Sprintf("paused-%02d", i)
		if _, err := s.store.Enqueue(t.Context(), nixie.Message{Queue: queue}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.office.Pause(t.Context(), []string{queue}, "later"); err != nil {
			t.Fatal(err)
		}
	}
	s.has("/", "2 letters: timeout: order &lt;n&gt;", "and 28 more that make no progress")
}
