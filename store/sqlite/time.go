package sqlite

import (
	"fmt"
	"sync"
	"time"

	"github.com/nixie-go/nixie/store/lifecycle"
)

// storeTime is the store's clock. It is the machine's clock, but never goes back. When the
// machine's clock is set back, it goes on at its own pace, so that leases and delays still end.
type storeTime struct {
	mu     sync.Mutex
	latest int64 // newest moment given out
	ahead  int64 // what is added to the machine's clock
}

// stepBack is the limit from which the machine's clock counts as set back. For less the store's
// time stands still.
const stepBack = int64(time.Second)

// read returns the store's time by the machine's clock, not before least. It reads the clock under
// the lock: a reading that came late, for example because the machine slept, would look like a
// clock that was set back.
func (st *storeTime) read(machine func() time.Time, least int64) int64 {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.latest = max(st.latest, least)
	now := machine().UnixNano() + st.ahead
	if st.latest-now > stepBack {
		st.ahead += st.latest - now
	}
	st.latest = max(st.latest, now)
	return st.latest
}

// now returns the store's time.
func (s *Store) now() int64 { return s.time.read(s.opts.Clock, 0) }

// Now returns the store's time.
func (s *Store) Now() time.Time { return lifecycle.Moment(s.now()) }

// sharedNow returns the store's time, not before any time that a process has written. So processes
// with different clocks agree on which leases are over.
func (s *Store) sharedNow(on queries) (int64, error) {
	mark, err := on.number("select cast(value as integer) from meta where name = 'clock'")
	if err != nil {
		return 0, err
	}
	return s.time.read(s.opts.Clock, mark), nil
}

// clockMark limits how far the stored clock lags behind.
const clockMark = int64(time.Second)

// markTime stores the time once in a while, so that it does not go back over a restart.
func (t *tx) markTime() error {
	last := t.store.owner.marked.Load()
	if t.now-last < clockMark {
		return nil
	}
	t.after = append(t.after, func() { t.store.owner.marked.Store(t.now) })
	return t.run(sqlText("keep_clock"), fmt.Sprint(t.now))
}
