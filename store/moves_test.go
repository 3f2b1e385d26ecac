package store_test

import (
	"slices"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// move is a row of either transition table.
type move struct {
	from, to string
	on       store.Event
}

func checkTable(
	t *testing.T, name string, all []string, moves []move, ends map[string]store.Event, next func(string, store.Event) (string, bool),
) {
	t.Helper()
	reached := map[string]bool{"": true}
	for range moves { // each round reaches at least one more, or none is left
		for _, m := range moves {
			if reached[m.from] {
				reached[m.to] = true
			}
		}
	}
	for _, s := range all {
		if !reached[s] {
			t.Errorf("%s: %s cannot be reached", name, s)
		}
	}
	seen := map[move]bool{}
	for _, m := range moves {
		known := (m.from == "" || slices.Contains(all, m.from)) && (slices.Contains(all, m.to) || m.on == store.OnPurge)
		if !known || (m.to == "") != (m.on == store.OnPurge) || m.on == "" {
			t.Errorf("%s: %+v names something unknown", name, m)
		}
		if key := (move{from: m.from, on: m.on}); seen[key] {
			t.Errorf("%s: two rows for %s of %q", name, m.on, m.from)
		} else {
			seen[key] = true
		}
		if exit, end := ends[m.from]; end && m.on != exit && m.on != store.OnPurge {
			t.Errorf("%s: %s is an end but has the exit %s", name, m.from, m.on)
		}
		if to, ok := next(m.from, m.on); !ok || to != m.to {
			t.Errorf("%s: the look-up of %+v gives %s, %v", name, m, to, ok)
		}
	}
	for _, from := range append([]string{""}, all...) {
		for _, on := range events() {
			if to, ok := next(from, on); ok != seen[move{from: from, on: on}] || !ok && to != "" {
				t.Errorf("%s: %s of %q gives %q, %v", name, on, from, to, ok)
			}
		}
	}
}

func events() []store.Event {
	return []store.Event{
		store.OnEnqueue, store.OnClaim, store.OnComplete, store.OnRetry, store.OnRelease, store.OnDiscard, store.OnBury,
		store.OnAbandon, store.OnCancel, store.OnRedrive, store.OnHold, store.OnUnhold, store.OnSuccess, store.OnDieAgain,
		store.OnExceed, store.OnConfirm, store.OnRequalify, store.OnRestore, store.OnGone, store.OnAdopt, store.OnNote, store.OnPurge,
		store.OnPrune, "no such event",
	}
}

func TestMessageMoves(t *testing.T) {
	var all []string
	for _, s := range nixie.States() {
		all = append(all, string(s))
	}
	var moves []move
	for _, m := range store.MessageMoves() {
		moves = append(moves, move{string(m.From), string(m.To), m.On})
	}
	ends := map[string]store.Event{"succeeded": "", "discarded": "", "canceled": "", "dead": store.OnRedrive}
	checkTable(t, "message", all, moves, ends, func(from string, on store.Event) (string, bool) {
		to, ok := store.NextState(nixie.State(from), on)
		return string(to), ok
	})
}

func TestLetterMoves(t *testing.T) {
	var all []string
	for _, s := range nixie.Statuses() {
		all = append(all, string(s))
		if end := s == nixie.StatusResolved || s == nixie.StatusDiscarded; s.Unresolved() == end {
			t.Errorf("%s: Unresolved is %v", s, s.Unresolved())
		}
	}
	var moves []move
	for _, m := range store.LetterMoves() {
		moves = append(moves, move{string(m.From), string(m.To), m.On})
	}
	ends := map[string]store.Event{"resolved": store.OnDieAgain, "discarded": store.OnRestore}
	checkTable(t, "letter", all, moves, ends, func(from string, on store.Event) (string, bool) {
		to, ok := store.NextStatus(nixie.Status(from), on)
		return string(to), ok
	})
}

func TestComebackFollowsTheTable(t *testing.T) {
	for _, from := range nixie.Statuses() {
		for _, to := range []nixie.Status{nixie.StatusOpen, nixie.StatusReview, nixie.StatusQuarantined} {
			way, at := store.Comeback(from, to), from
			for _, on := range way {
				next, ok := store.NextStatus(at, on)
				if !ok {
					t.Errorf("%s to %s: %s is not possible from %s", from, to, on, at)
				}
				at = next
			}
			if onItsWay := from == nixie.StatusRedriving; onItsWay != (way == nil) || !onItsWay && at != to {
				t.Errorf("%s to %s: %v leads to %s", from, to, way, at)
			}
		}
	}
}

func TestAdoptionFollowsTheTable(t *testing.T) {
	for _, want := range nixie.Statuses() {
		events := store.Adoption(want)
		if waits := want.Unresolved() && want != nixie.StatusRedriving; waits == (events == nil) {
			t.Errorf("%s: the way there is %v", want, events)
		}
		at := nixie.Status("")
		for _, on := range events {
			next, ok := store.NextStatus(at, on)
			if !ok {
				t.Errorf("%s: the table does not allow %s", want, on)
			}
			at = next
		}
		if events != nil && at != want {
			t.Errorf("%s: the way leads to %s", want, at)
		}
	}
}
