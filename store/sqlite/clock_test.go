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
	uptime := func() time.Duration { return m.uptime.Now().Sub(m.started) }
	return open(m.T, m.path, sqlite.Options{Clock: m.wall.Now, Uptime: uptime, Reserve: -1})
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

// TestClockAheadIsNotShown: what workers and people compare with the machine's clock is told by it,
// however far the store's clock is ahead.
func TestClockAheadIsNotShown(t *testing.T) {
	m := newMachine(t)
	m.glitch()
	near := func(what string, got time.Time, least, most time.Duration) {
		t.Helper()
		if in := got.Sub(m.wall.Now()); in < least-time.Microsecond || in > most+time.Microsecond {
			t.Errorf("%s is in %s, want %s…%s", what, in, least, most)
		}
	}
	_, err := m.holder.Enqueue(t.Context(), nixie.Message{Queue: "q", ExpiresAt: m.wall.Now().Add(time.Hour)})
	must(t, err)
	m.pass(10 * time.Minute)
	ds, err := m.other.Claim(t.Context(), "q", nixie.Want{Max: 1, Lease: 9 * time.Minute})
	must(t, err)
	near("enqueue", ds[0].EnqueuedAt, -10*time.Minute, -10*time.Minute)
	near("first delivery", ds[0].FirstReceivedAt, 0, 0)
	near("end of the lease", ds[0].Lease.ExpiresAt, 10*time.Minute, 10*time.Minute)
	near("expiry", ds[0].ExpiresAt, 50*time.Minute, 50*time.Minute)
	seen, _, err := m.holder.Messages(t.Context(), nixie.Filter{IDs: []nixie.ID{ds[0].ID}}, store.Page{Limit: 1})
	must(t, err)
	near("end of the lease that is shown", seen[0].LeaseExpiresAt, 10*time.Minute, 10*time.Minute)

	die := func(d *nixie.Delivery) store.Resolution {
		t.Helper()
		must(t, m.other.Settle(t.Context(), []nixie.Settlement{{Delivery: d, Verb: nixie.Bury, Failure: &nixie.Failure{Text: "boom"},
			Burial: &nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen, Redrivable: true}}})[0])
		letters, _, err := m.other.Letters(t.Context(), nixie.Filter{}, store.Page{Limit: 1})
		must(t, err)
		return store.Resolution{Letter: letters[0].ID, Event: store.OnRedrive, Actor: "ann"}
	}
	again := die(ds[0])
	must(t, m.other.Resolve(t.Context(), []store.Resolution{again})[0]) // it has not expired
	ds, err = m.other.Claim(t.Context(), "q", nixie.Want{Max: 1})
	must(t, err)
	near("redrive", ds[0].RedrivenAt, 0, 0)
	again = die(ds[0])
	m.pass(time.Hour)
	if err := m.other.Resolve(t.Context(), []store.Resolution{again})[0]; nixie.CodeOf(err) != nixie.CodeConflict {
		t.Errorf("redrive of what has expired: %v", err)
	}
	again.ExpiresIn = time.Hour
	must(t, m.other.Resolve(t.Context(), []store.Resolution{again})[0])
	ds, err = m.other.Claim(t.Context(), "q", nixie.Want{Max: 1})
	must(t, err)
	near("new expiry", ds[0].ExpiresAt, time.Hour, time.Hour)
}

// TestClockAheadMovesLeasesOnce sets the clock ahead by less than a process waits before it keeps
// the time again.
func TestClockAheadMovesLeasesOnce(t *testing.T) {
	m := newMachine(t)
	_, err := m.holder.Enqueue(t.Context(), nixie.Message{Queue: "q"}, nixie.Message{Queue: "q", Priority: 1}) // a range, and a row
	must(t, err)
	ds, err := m.holder.Claim(t.Context(), "q", nixie.Want{Max: 2, Lease: time.Minute})
	must(t, err)
	if len(ds) != 2 {
		t.Fatalf("%d of 2 messages are held", len(ds))
	}
	for range 100 {
		m.set(5 * time.Millisecond)
	}
	m.set(300 * time.Millisecond)
	for range 100 {
		m.set(0)
	}
	m.pass(59*time.Second + 500*time.Millisecond)
	if m.take() != 0 {
		t.Error("a lease ended early")
	}
	m.pass(500 * time.Millisecond)
	if n := m.take(); n != 2 { // all to be judged
		t.Errorf("of 2 leases %d are over", n)
	}
}
