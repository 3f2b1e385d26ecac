package sqlite

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// machine has the clocks of a test: one that people set, and one that cannot be set.
type machine struct {
	wall, uptime int64
	boot         string
}

func (m *machine) process() *storeTime {
	st := newStoreTime(func() time.Time { return time.Unix(0, m.wall) }, func() time.Duration { return time.Duration(m.uptime) })
	st.boot = m.boot
	return st
}

func (st *storeTime) see(kept string) moment {
	now, _ := st.read(kept)
	return now
}

func (m *machine) pass(d int64) { m.wall, m.uptime = m.wall+d, m.uptime+d }

const (
	second = int64(time.Second)
	day    = 24 * hour
)

// TestStoreTime never goes back, and goes slowly while it is ahead.
func TestStoreTime(t *testing.T) {
	m := &machine{1000 * day, hour, "a"}
	st := m.process()
	start := m.wall
	for _, c := range []struct {
		name         string
		passes, jump int64
		kept         string
		want         int64 // after start
	}{
		{"first", 0, 0, "", 0},
		{"goes on", hour, 0, "", hour},
		{"set a little back", 0, -second / 2, "", hour},
		{"goes slowly", second, 0, "", hour + second*9/10},
		{"until it is caught up", hour, 0, "", 2*hour + second/2},
		{"set ahead", 0, day, "", 2*hour + second/2 + day},
		{"set back", 0, -day, "", 2*hour + second/2 + day},
		{"set ahead again", 0, day, "", 2*hour + second/2 + day},
		{"set back again", 0, -day, "", 2*hour + second/2 + day},
		{"far back", 0, -500 * day, "", 2*hour + second/2 + day},
		{"goes slowly from far ahead", 10 * hour, 0, "", 11*hour + second/2 + day},
		{"right again", 0, 500 * day, "", 11*hour + second/2 + day},
		{"another process is ahead", 0, 0, mark{moment{start + 3*day, m.wall, 13*hour + second}, "a"}.String(), 3 * day},
		{"and it follows", 10 * second, 0, "", 3*day + 9*second},
		{"an older build kept no pace", 0, 0, "86400000000000000", 3*day + 9*second},
		{"what cannot be read", 0, 0, "soon", 3*day + 9*second},
	} {
		m.pass(c.passes)
		m.wall += c.jump
		if got := st.see(c.kept).store - start; got != c.want {
			t.Fatalf("%s: %s, want %s", c.name, time.Duration(got), time.Duration(c.want))
		}
	}
}

// TestStoreTimeIsReadUnderTheLock: a look that comes late would seem to be a clock that was set
// back.
func TestStoreTimeIsReadUnderTheLock(t *testing.T) {
	var st *storeTime
	st = newStoreTime(func() time.Time {
		if st != nil && st.mu.TryLock() {
			t.Error("the clock is read without the lock")
			st.mu.Unlock()
		}
		return time.Unix(1, 0)
	}, func() time.Duration { return 0 })
	st.see("")
}

// TestStoreTimeOverRestarts compares processes that come and go, starts of the machine, and a clock
// that is set at will, with what the store's clock promises.
func TestStoreTimeOverRestarts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{1000 * day, day, "boot 0"}
		right := m.wall // what a clock would show that was never set
		top := int64(0) // how far the machine's clock was ever ahead of that
		st, kept := m.process(), ""
		look := func() moment {
			now := st.see(kept)
			top = max(top, m.wall-right)
			return now
		}
		last := look()
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			passed, restarted := int64(0), false
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				passed = rapid.Int64Range(0, 2*day).Draw(t, "passes")
				m.pass(passed)
			case 1:
				m.wall += rapid.Int64Range(-400*day, 400*day).Draw(t, "set")
			case 2:
				m.wall = right
			case 3: // another process, which knows what the file has kept
				kept = mark{last, m.boot}.String()
				st = m.process()
			case 4:
				kept = mark{last, m.boot}.String()
				passed, restarted = rapid.Int64Range(0, day).Draw(t, "off"), true
				m.boot, m.uptime, m.wall = m.boot+"'", 0, m.wall+passed
				st = m.process()
			}
			right += passed
			now := look()
			switch pace := now.store - last.store; {
			case pace < 0:
				t.Fatalf("it went back by %s", time.Duration(-pace))
			case now.store < m.wall:
				t.Fatal("it is behind the machine's clock")
			case pace < slowed(passed)-1:
				t.Fatalf("in %s it went %s", time.Duration(passed), time.Duration(pace))
			case !restarted && pace > passed && now.store != m.wall:
				t.Fatalf("in %s it went %s, and the machine's clock shows another time", time.Duration(passed), time.Duration(pace))
			case now.store-right > top:
				t.Fatalf("it is ahead by %s, and no clock ever was by more than %s", time.Duration(now.store-right), time.Duration(top))
			}
			last = now
		}
	})
}

// TestMomentsFromOutside waits until the machine's clock shows a moment that was given.
func TestMomentsFromOutside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := moment{wall: 1000 * day, uptime: hour}
		now.store = now.wall + rapid.Int64Range(0, 400*day).Draw(t, "lead")
		in := rapid.Int64Range(1, 4000*day).Draw(t, "in")
		m := &machine{now.wall, now.uptime, "a"}
		st := m.process()
		st.see(mark{now, "a"}.String())
		due, shown := now.due(m.wall+in), m.wall+in
		m.pass(in - 10)
		if st.see("").store >= due {
			t.Fatalf("in %s comes early", time.Duration(in))
		}
		if seen := st.see("").shown(due).UnixNano(); seen < shown-1000 || seen > shown+1000 {
			t.Fatalf("it is shown %s late", time.Duration(seen-shown))
		}
		m.pass(20)
		if st.see("").store < due {
			t.Fatalf("in %s comes late", time.Duration(in))
		}
		if past := now.due(now.wall - in); past != now.wall-in {
			t.Fatal("what has passed is another moment")
		}
	})
}
