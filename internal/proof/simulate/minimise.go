package simulate

import (
	"slices"
	"testing"
	"time"
)

// maxReplays bounds the search for a shorter list: seconds in memory, minutes on files.
const maxReplays = 1_000

// Minimise makes the events of a run fewer for as long as it breaks the same rule:
// it leaves out large parts, then smaller ones, then each alone; and what is left
// is made plainer. The result is the run of what is left.
func (s Simulation) Minimise(t testing.TB, r Result) Result {
	t.Helper()
	m := minimiser{tries: maxReplays, best: r, again: func(events []Event) Result { return s.Again(t, r.Setup, events) }}
	m.shorten()
	m.simplify()
	m.shorten()
	return m.best
}

// minimiser searches for a shorter run like the best one so far.
type minimiser struct {
	tries int
	best  Result
	again func([]Event) Result
}

// try takes a list of events over if they break the same rule.
func (m *minimiser) try(events []Event) bool {
	if m.tries == 0 {
		return false
	}
	m.tries--
	r := m.again(events)
	if r.Found == nil || r.Found.Rule != m.best.Found.Rule {
		return false
	}
	m.best = r
	return true
}

// shorten leaves events out.
func (m *minimiser) shorten() {
	for part := max(len(m.best.Events)/2, 1); ; {
		before := len(m.best.Events)
		for at := 0; at < len(m.best.Events); {
			rest := slices.Delete(slices.Clone(m.best.Events), at, min(at+part, len(m.best.Events)))
			if !m.try(rest) {
				at += part
			}
		}
		shorter := len(m.best.Events) < before
		switch {
		case m.tries == 0, part == 1 && !shorter:
			return
		case part > 1:
			part /= 2
		}
	}
}

// simplify replaces events by plainer ones.
func (m *minimiser) simplify() {
	for at := 0; at < len(m.best.Events); {
		if !slices.ContainsFunc(plainer(m.best.Events[at]), func(e Event) bool { return m.replaces(at, e) }) {
			at++
		}
	}
	m.try(joined(m.best.Events))
}

// replaces puts an event in the place of another, if that is enough.
func (m *minimiser) replaces(at int, e Event) bool {
	events := slices.Clone(m.best.Events)
	events[at] = e
	return m.try(events)
}

// plainer lists what could stand for an event: less of it, or no more than the
// moment that it takes.
func plainer(e Event) []Event {
	var all []Event
	for i := range e.New {
		less := e
		less.New = slices.Delete(slices.Clone(e.New), i, i+1)
		if len(less.New) > 0 {
			all = append(all, less)
		}
	}
	if e.Fault.Kind != "" {
		sound := e
		sound.Fault = Fault{}
		all = append(all, sound)
	}
	if e.Do != Wait {
		all = append(all, Event{Do: Wait})
	}
	return all
}

// joined makes one wait of several in a row.
func joined(events []Event) []Event {
	var all []Event
	for _, e := range events {
		if n := len(all); n > 0 && e.Do == Wait && all[n-1].Do == Wait {
			all[n-1].For += e.For + time.Millisecond
			continue
		}
		all = append(all, e)
	}
	return all
}
