package sqlite_test

import (
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/store/storetest"
)

// machine is a store of two processes on a machine whose clock is set.
type machine struct {
	*testing.T
	wall, uptime *storetest.Clock
	started      time.Time
	path         string
	holder       *sqlite.Store // brings messages and holds leases
	other        *sqlite.Store // takes what is due
}

func newMachine(t *testing.T) *machine {
	m := &machine{T: t, wall: storetest.NewClock(), uptime: storetest.NewClock(), path: storePath(t)}
	m.started = m.uptime.Now()
	m.holder, m.other = m.open(), m.open()
	return m
}

func (m *machine) open() *sqlite.Store {
	return open(m.T, m.path, sqlite.Options{Clock: m.wall.Now, Reserve: -1, Uptime: func() time.Duration { return m.uptime.Now().Sub(m.started) }})
}

func (m *machine) pass(d time.Duration) {
	m.wall.Advance(d)
	m.uptime.Advance(d)
}

// set sets the machine's clock, and both processes see it.
func (m *machine) set(by time.Duration) {
	m.Helper()
	m.wall.Advance(by)
	fill(m.T, m.holder, "another", 1)
	fill(m.T, m.other, "another", 1)
}

func (m *machine) glitch() {
	m.Helper()
	m.set(24 * time.Hour)
	m.pass(time.Minute)
	m.set(-24 * time.Hour)
}

// restart ends the other process, and starts it again.
func (m *machine) restart() {
	m.Helper()
	must(m.T, m.other.Close())
	m.other = m.open()
}

func (m *machine) take() int {
	m.Helper()
	ds, err := m.other.Claim(m.Context(), "q", nixie.Want{Max: 1})
	must(m.T, err)
	return len(ds)
}

// TestClockAhead prints when what should happen after six hours happens, while the machine's clock
// is set.
func TestClockAhead(t *testing.T) {
	const promised = 6 * time.Hour
	kinds := []struct {
		name  string
		begin func(m *machine)
	}{
		{"--at", func(m *machine) {
			_, err := m.holder.Enqueue(m.Context(), nixie.Message{Queue: "q", NotBefore: m.wall.Now().Add(promised)})
			must(m.T, err)
		}},
		{"reschedule --at", func(m *machine) {
			got, err := m.holder.Enqueue(m.Context(), nixie.Message{Queue: "q", Delay: time.Hour})
			must(m.T, err)
			must(m.T, m.holder.Amend(m.Context(), []nixie.ID{got[0].ID},
				store.Change{Verb: store.Reschedule, Actor: "ann", At: m.wall.Now().Add(promised)})[0])
		}},
		{"delay", func(m *machine) {
			_, err := m.holder.Enqueue(m.Context(), nixie.Message{Queue: "q", Delay: promised})
			must(m.T, err)
		}},
		{"lease", func(m *machine) {
			fill(m.T, m.holder, "q", 1)
			ds, err := m.holder.Claim(m.Context(), "q", nixie.Want{Max: 1, Lease: promised})
			must(m.T, err)
			if len(ds) != 1 {
				m.Fatal("there is nothing to hold")
			}
		}},
	}
	for _, jump := range []struct {
		name          string
		before, later func(m *machine) // later is half an hour after the begin
		due           bool             // later the machine's clock says that the six hours are over
	}{
		{name: "none"},
		{name: "a day ahead and back, before", before: (*machine).glitch},
		{name: "the same ten times", before: func(m *machine) {
			for range 10 {
				m.glitch()
			}
		}},
		{name: "the same, then a restart", before: (*machine).glitch, later: (*machine).restart},
		{name: "a day back, while it waits", later: func(m *machine) { m.set(-24 * time.Hour) }},
		{name: "a day ahead, while it waits", later: func(m *machine) { m.set(24 * time.Hour) }, due: true},
		{name: "a day ahead and back, while it waits", later: (*machine).glitch, due: true},
	} {
		for _, kind := range kinds {
			m := newMachine(t)
			if jump.before != nil {
				jump.before(m)
			}
			kind.begin(m)
			began := m.uptime.Now()
			m.pass(promised / 12)
			if jump.later != nil {
				jump.later(m)
			}
			for m.take() == 0 && m.uptime.Now().Sub(began) < 4*promised {
				m.pass(time.Minute)
			}
			ran := m.uptime.Now().Sub(began)
			t.Logf("%-36s %-15s after %s", jump.name, kind.name, ran)
			if early := ran < promised; early && (!jump.due || kind.name == "lease") || ran > promised*10/9+time.Minute {
				t.Errorf("clock set %s: %s of %s was over after %s", jump.name, kind.name, promised, ran)
			}
			must(t, m.holder.Close())
			must(t, m.other.Close())
		}
	}
}
