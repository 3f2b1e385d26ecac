package simulate

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/nixie-go/nixie/store/storetest"
)

// Result is how a run ended.
type Result struct {
	Setup  Setup
	Events []Event
	Trace  string         // hash of all that was asked and answered
	Found  *Violation     // nil if there was none
	Seen   map[string]int // how often what happened
}

// Simulation makes runs over the stores of a harness.
type Simulation struct {
	Harness storetest.Harness
	Events  int // in a run
}

// season is how many events lie between two readings of the whole store.
const season = 100

// Seed makes the run of a seed.
func (s Simulation) Seed(t testing.TB, seed uint64) Result {
	dice := rand.New(rand.NewPCG(seed, 0))
	setup := draw(seed, dice)
	return s.play(t, setup, func(w *world) func() (Event, bool) {
		g := newGambler(dice, w)
		return func() (Event, bool) { return g.next(), w.steps < s.Events }
	})
}

// Again makes a run of events that are given.
func (s Simulation) Again(t testing.TB, setup Setup, events []Event) Result {
	return s.play(t, setup, func(*world) func() (Event, bool) {
		left := events
		return func() (e Event, more bool) {
			if len(left) == 0 {
				return e, false
			}
			e, left = left[0], left[1:]
			return e, true
		}
	})
}

// play makes a run of what a source says, event by event, and ends it at the
// first violation.
func (s Simulation) play(t testing.TB, setup Setup, source func(*world) func() (Event, bool)) Result {
	t.Helper()
	clock := storetest.NewClock()
	shared := s.Harness.Open(t, clock)
	defer shared.Close()
	w, err := newWorld(context.Background(), setup, shared, clock)
	if err != nil {
		t.Fatal(err)
	}
	r := Result{Setup: setup}
	next := source(w)
	for e, more := next(); more && w.book.found == nil; e, more = next() {
		r.Events = append(r.Events, e)
		w.step(e)
		if len(r.Events)%season == 0 {
			w.book.census(w.ctx, w.eye)
		}
	}
	if w.book.found == nil {
		w.calm()
	}
	r.Seen = w.book.seen
	r.Found, r.Trace = w.book.found, hex.EncodeToString(w.trace.Sum(nil))
	return r
}

// Repeats makes the run of a seed, then once more, then of its events alone, and
// fails the test unless all three were the same.
func (s Simulation) Repeats(t testing.TB, seed uint64) {
	t.Helper()
	first := s.Seed(t, seed)
	for _, r := range []Result{s.Seed(t, seed), s.Again(t, first.Setup, first.Events)} {
		if r.Trace != first.Trace {
			t.Errorf("seed %d has the trace %s, and then %s", seed, first.Trace, r.Trace)
		}
	}
}

// Check makes the run of a seed, and fails the test with the fewest events that
// still break the same rule. It returns how often what happened.
func (s Simulation) Check(t testing.TB, seed uint64) map[string]int {
	t.Helper()
	r := s.Seed(t, seed)
	if r.Found != nil {
		t.Errorf("%sof %d at first", s.Minimise(t, r), len(r.Events))
	}
	return r.Seen
}

// String tells the story of a run.
func (r Result) String() string {
	text := fmt.Sprintf("seed %d: ", r.Setup.Seed)
	if r.Found == nil {
		return text + "nothing is wrong"
	}
	text += fmt.Sprintf("%s: %s\n%s%d events:\n", r.Found.Rule, r.Found.Text, &r.Setup, len(r.Events))
	for i, e := range r.Events {
		text += fmt.Sprintf("%4d %s\n", i+1, e)
	}
	return text
}
