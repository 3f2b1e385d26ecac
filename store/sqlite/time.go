package sqlite

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/nixie-go/nixie/store/lifecycle"
)

// moment is one look at the clocks, in nanoseconds.
type moment struct {
	store  int64 // the store's time since 1970; never before wall
	wall   int64 // the machine's clock since 1970, which people and programs set
	uptime int64 // since the machine was started, which cannot be set
}

// slowed returns how far the store's clock goes in a time while it is ahead of the machine's.
func slowed(d int64) int64 { return d - d/10 }

// lead returns how far the store's clock is ahead of the machine's.
func (m moment) lead() int64 { return m.store - m.wall }

// caught returns when the machine's clock will have caught up.
func (m moment) caught() int64 { return m.wall + min(m.lead(), (math.MaxInt64-m.wall)/10)*10 }

// due returns the store's time at which the machine's clock will show a moment from outside. So
// "in six hours" means six hours, however far the store's clock is ahead.
func (m moment) due(wall int64) int64 {
	if wall <= m.wall {
		return wall
	}
	return wall + min(max(m.lead()-(wall-m.wall)/10, 0), math.MaxInt64-wall)
}

// dueAt is due for a time, of which the zero one stays.
func (m moment) dueAt(wall time.Time) time.Time {
	return lifecycle.Moment(m.due(lifecycle.Nanos(wall)))
}

// before returns the store's time before a duration.
func (m moment) before(d time.Duration) int64 {
	return lifecycle.Nanos(lifecycle.Moment(m.store).Add(-d))
}

// shown returns when the machine's clock shows a moment of the store's clock, to the microsecond if
// the two differ: people and workers compare what they see with the machine's clock. What is behind
// both was written before the clock was set, and stays.
func (m moment) shown(store int64) time.Time {
	left, lead := store-m.store, m.lead()
	if -lead < left && left/9 < lead {
		store = (m.wall + left + left/9 + 500) / 1000 * 1000
	}
	return lifecycle.Moment(store)
}

// mark is a moment that the file keeps, so that the store's time does not go back over a restart,
// and has gone on at its pace. Its text begins with the store's time.
type mark struct {
	moment
	boot string // in which the uptime counts
}

func (m mark) String() string { return fmt.Sprintf("%d %d %d %s", m.store, m.wall, m.uptime, m.boot) }

// parseMark reads a mark. What it cannot read is 0: earlier builds kept the store's time only.
func parseMark(text string) (m mark) {
	_, _ = fmt.Sscan(text, &m.store, &m.wall, &m.uptime)
	if parts := strings.SplitN(text, " ", 4); len(parts) == 4 {
		m.boot = parts[3]
	}
	return m
}

// storeTime is the store's clock. It is the machine's clock, but never goes back. While it is ahead
// of a machine's clock that was set back it goes at nine tenths of the pace: leases and delays end
// nevertheless, and the machine's clock catches up. The pace is that of the uptime, so a clock that
// is set ahead and back again and again moves the store's clock no further than once.
type storeTime struct {
	clock  func() time.Time
	uptime func() time.Duration
	boot   string

	mu   sync.Mutex
	last moment // from which the pace counts
	seen string // text of the newest mark of the file
	kept mark   // and the mark
}

// newStoreTime makes the clock of a store. The times of a test's clock have no monotonic reading:
// then they are the uptime too.
func newStoreTime(clock func() time.Time, uptime func() time.Duration) *storeTime {
	st := &storeTime{clock: clock, uptime: uptime, boot: "test"}
	switch now := clock(); {
	case uptime != nil:
	case now == now.Round(0): //nolint:staticcheck // Round removes a monotonic reading, and Equal does not look at it
		st.uptime = func() time.Duration { return time.Duration(clock().UnixNano()) }
	default:
		st.uptime, st.boot = systemUptime()
	}
	return st
}

// read looks at the clocks. It also follows the mark that the file keeps, and returns the newest
// one; "" is none. It looks under the lock: a look that came late, for example because the machine
// slept, would seem to be a clock that was set back.
func (st *storeTime) read(kept string) (moment, mark) {
	st.mu.Lock()
	defer st.mu.Unlock()
	now := moment{wall: st.clock().UnixNano(), uptime: int64(st.uptime())}
	line := st.last.store + slowed(max(now.uptime-st.last.uptime, 0))
	now.store = max(line, now.wall)
	if kept != "" && kept != st.seen {
		st.seen, st.kept = kept, parseMark(kept)
		now.store = max(now.store, st.kept.store+slowed(st.since(&st.kept, now)))
	}
	if now.store > line || now.uptime < st.last.uptime {
		st.last = now
	}
	return now, st.kept
}

// since returns how much time has passed since a mark. Across a start of the machine only its clock
// tells that.
func (st *storeTime) since(m *mark, now moment) int64 {
	switch m.boot {
	case st.boot:
		return max(now.uptime-m.uptime, 0)
	case "":
		return 0
	}
	return max(now.wall-m.wall, 0)
}

// jump returns how far the machine's clock was set ahead since a mark of the same boot.
func (st *storeTime) jump(m *mark, now moment) int64 {
	if m.boot != st.boot {
		return 0
	}
	return max(now.store-m.store-max(now.uptime-m.uptime, 0), 0)
}

// look looks at the clocks.
func (s *Store) look() moment {
	now, _ := s.time.read("")
	return now
}

// now returns the store's time. Processes agree on it in transactions only, see [tx.readTime].
func (s *Store) now() int64 { return s.look().store }

// Now returns the store's time.
func (s *Store) Now() time.Time { return lifecycle.Moment(s.now()) }

// sharedMoment looks at the clocks. The store's time is not before any that a process has written,
// so processes agree on which leases are over.
func (s *Store) sharedMoment(on queries) (now moment, kept mark, err error) {
	var text string
	if err := on.each("select value from meta where name = 'clock'", func(row rows) error {
		text = row.ColumnText(0)
		return nil
	}); err != nil {
		return now, kept, err
	}
	now, kept = s.time.read(text)
	return now, kept, nil
}

const (
	// clockMark limits how far the stored clock lags behind.
	clockMark = int64(time.Second)
	// By leastJump and more a clock was set ahead. Programs that keep clocks right do not set them
	// for less.
	leastJump = int64(100 * time.Millisecond)
)

// readTime sets the time of the transaction. When the machine's clock was set ahead, it moves the
// leases as far: they are counted by the uptime, and their holders still have them.
func (t *tx) readTime() error {
	now, kept, err := t.store.sharedMoment(t.queries)
	if err != nil {
		return err
	}
	t.now, t.at = now.store, now
	jump := t.store.time.jump(&kept, now)
	if jump < leastJump {
		return nil
	}
	if err := t.run("update batch set until = until + ?", jump); err != nil {
		return err
	}
	if err := t.run("update pending set until = until + ? where state = 1", jump); err != nil {
		return err
	}
	return t.keepTime()
}

// markTime stores the time once in a while.
func (t *tx) markTime() error {
	if t.now-t.store.owner.marked.Load() < clockMark {
		return nil
	}
	t.after = append(t.after, func() { t.store.owner.marked.Store(t.now) })
	return t.keepTime()
}

func (t *tx) keepTime() error {
	return t.run(sqlText("keep_clock"), mark{t.at, t.store.time.boot}.String())
}
