package office_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// watched is an office over a store whose clock moves only when a caller waits.
type watched struct {
	*testing.T
	now time.Time
	st  store.Store
	o   *office.Office
	n   int
}

func newWatched(t *testing.T) *watched {
	w := &watched{T: t, now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return w.now }
	w.st = memory.New(memory.Options{Clock: clock})
	var err error
	if w.o, err = office.New(office.Config{Store: w.st, Actor: "ann", Clock: clock}); err != nil {
		t.Fatal(err)
	}
	return w
}

// die lets n messages of a group die now.
func (w *watched) die(group string, n int) {
	w.Helper()
	for range n {
		w.n++
		if _, err := w.st.Enqueue(w.Context(), nixie.Message{Queue: "q", Key: fmt.Sprint(w.n)}); err != nil {
			w.Fatal(err)
		}
		w.buryNext(group)
	}
}

func (w *watched) buryNext(group string) {
	w.Helper()
	ds, err := w.st.Claim(w.Context(), "q", nixie.Want{Max: 1})
	if err != nil || len(ds) != 1 {
		w.Fatal(ds, err)
	}
	if err := w.st.Settle(w.Context(), []nixie.Settlement{{
		Delivery: ds[0], Verb: nixie.Bury, Failure: &nixie.Failure{Text: group, Reason: nixie.ReasonTimeout},
		Burial: &nixie.Burial{Cause: nixie.CauseExhausted, Status: nixie.StatusOpen, Signature: group, Fingerprint: group,
			Redrivable: true},
	}})[0]; err != nil {
		w.Fatal(err)
	}
}

// resolveAll applies an event to all letters of a group.
func (w *watched) resolveAll(group string, on store.Event) {
	w.Helper()
	for l, err := range w.o.AllLetters(w.Context(), office.Unresolved(nixie.Filter{Fingerprints: []string{group}}), false) {
		if err != nil {
			w.Fatal(err)
		}
		if err := w.st.Resolve(w.Context(), []store.Resolution{{Letter: l.ID, Event: on, Actor: "ann", Reason: "r"}})[0]; err != nil {
			w.Fatal(err)
		}
	}
}

// follow watches and calls one of the acts in each wait, until none is left.
func (w *watched) follow(ask office.WatchRequest, acts ...func()) (told []string, cursor string) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	defer cancel()
	ask.Wait = func(ctx context.Context, d time.Duration) error {
		w.now = w.now.Add(d)
		if len(acts) == 0 {
			cancel()
			return ctx.Err()
		}
		acts[0]()
		acts = acts[1:]
		return nil
	}
	cursor, err := w.o.Watch(ctx, ask, func(_ context.Context, n office.News) error {
		mark := "grows"
		if n.NewGroup {
			mark = "new"
		}
		told = append(told, fmt.Sprintf("%s %s +%d", n.Fingerprint, mark, n.Added))
		if want := min(n.Added, office.MaxNewsLetters); int64(len(n.Letters)) != want {
			w.Errorf("%d letters named, want %d", len(n.Letters), want)
		}
		return nil
	})
	if err != nil {
		w.Error(err)
	}
	return told, cursor
}

func (w *watched) told(got []string, want ...string) {
	w.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.Errorf("told %q, want %q", got, want)
	}
}

func TestWatchTellsWhatIsNew(t *testing.T) {
	w := newWatched(t)
	w.die("old", 2)
	got, cursor := w.follow(office.WatchRequest{FromNow: true},
		func() {},
		func() { w.die("a", 1) },
		func() { w.die("a", 7); w.die("b", 1); w.die("old", 1) },
		func() { w.resolveAll("a", store.OnDiscard); w.die("a", 1) },
		func() { w.resolveAll("b", store.OnRedrive); w.buryNext("b") },
	)
	w.told(got, "a new +1", "a grows +7", "b new +1", "old grows +1", "a new +1", "b new +1")
	w.die("c", 1)
	got, _ = w.follow(office.WatchRequest{Cursor: cursor, Once: true})
	w.told(got, "c new +1")
	got, _ = w.follow(office.WatchRequest{Once: true})
	if len(got) != 4 {
		t.Errorf("of all there is it tells %q", got)
	}
}

// Letters may die at the same time as the newest one that was seen.
func TestWatchWhereTimeStands(t *testing.T) {
	w := newWatched(t)
	w.die("a", 1)
	got, cursor := w.follow(office.WatchRequest{Once: true})
	w.told(got, "a new +1")
	w.die("a", 1)
	got, cursor = w.follow(office.WatchRequest{Once: true, Cursor: cursor})
	w.told(got, "a grows +1")
	w.die("b", 3)
	got, cursor = w.follow(office.WatchRequest{Once: true, Cursor: cursor})
	w.told(got, "b new +3")
	got, _ = w.follow(office.WatchRequest{Once: true, Cursor: cursor})
	w.told(got)
}

// After a long pause there is more than a page. Watch tells all of it, each group as new once, and
// tells again what was interrupted.
func TestWatchAfterALongPause(t *testing.T) {
	w := newWatched(t)
	for range 3 {
		w.die("a", 500)
		w.now = w.now.Add(time.Second)
		w.die("b", 1)
	}
	sum, fresh := int64(0), 0
	cut := errors.New("cut")
	cursor, err := w.o.Watch(t.Context(), office.WatchRequest{Once: true}, func(_ context.Context, n office.News) error {
		if sum += n.Added; n.NewGroup {
			fresh++
		}
		if sum > 1200 {
			return cut
		}
		return nil
	})
	if !errors.Is(err, cut) || cursor != "" || fresh != 2 {
		t.Fatalf("cut short: cursor %q, %d new groups, %v", cursor, fresh, err)
	}
	sum = 0
	if _, err := w.o.Watch(t.Context(), office.WatchRequest{Once: true, Cursor: cursor}, func(_ context.Context, n office.News) error {
		sum += n.Added
		return nil
	}); err != nil || sum != 1503 {
		t.Errorf("told %d letters of 1503, %v", sum, err)
	}
}

func TestWatchEnds(t *testing.T) {
	w := newWatched(t)
	polls := 0
	if _, err := w.o.Watch(t.Context(),
		office.WatchRequest{Until: w.now.Add(10 * time.Second), Interval: 3 * time.Second,
			Wait: func(_ context.Context, d time.Duration) error {
				polls++
				w.now = w.now.Add(d)
				return nil
			}}, nil); err != nil || polls != 3 {
		t.Errorf("%d waits, %v", polls, err)
	}
	for _, bad := range []office.WatchRequest{{Cursor: "nonsense"}, {Cursor: "1.2"}, {Interval: time.Millisecond}} {
		if _, err := w.o.Watch(t.Context(), bad, nil); nixie.CodeOf(err) != nixie.CodeInvalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// After an update, letters of the earlier build have fingerprints of another algorithm. A cause
// that they have is not new.
func TestWatchKnowsTheCausesOfEarlierBuilds(t *testing.T) {
	w := newWatched(t)
	const older = "v2-0123456789abcdef"
	w.die(older, 1) // its text
	_, group := policy.Signature(&nixie.Failure{Reason: nixie.ReasonTimeout, Text: older})
	_, other := policy.Signature(&nixie.Failure{Reason: nixie.ReasonTimeout, Text: "other"})
	got, _ := w.follow(office.WatchRequest{FromNow: true},
		func() {},
		func() { w.die(group, 1) },
		func() { w.die(other, 1) },
	)
	w.told(got, group+" grows +1", other+" new +1")
}
