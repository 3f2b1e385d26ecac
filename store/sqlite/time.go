package sqlite

import (
	"fmt"
	"sync"
	"time"

	"github.com/nixie-go/nixie/store/lifecycle"
)

// storeTime is the store's clock: the machine's, but it never goes back, and
// when the machine's clock is set back it goes on at its own pace instead of
// standing still: leases and delays still end.
type storeTime struct {
	mu     sync.Mutex
	latest int64 // newest moment given out
	ahead  int64 // what is added to the machine's clock
}

// stepBack is how far the machine's clock may fall behind before it counts as
// set back. Less is bridged by standing still.
const stepBack = int64(time.Second)

// read returns the store's time by the machine's clock, not before least. The clock is
// read in turn: a reading that somebody was late with, because the machine slept for
// example, would look like a clock that was set back.
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

// now is the store's time.
func (s *Store) now() int64 { return s.time.read(s.opts.Clock, 0) }

// Now is the store's time.
func (s *Store) Now() time.Time { return lifecycle.Moment(s.now()) }

// sharedNow is the store's time, not before what any process wrote down, so
// that processes that saw different clocks agree on which leases are over.
func (s *Store) sharedNow(on queries) (int64, error) {
	mark, err := on.number("select cast(value as integer) from meta where name = 'clock'")
	if err != nil {
		return 0, err
	}
	return s.time.read(s.opts.Clock, mark), nil
}

// clockMark is how far the kept clock may lag behind.
const clockMark = int64(time.Second)

// markTime keeps the store's time now and then, so that it does not go back
// over a restart.
func (t *tx) markTime() error {
	last := t.store.owner.marked.Load()
	if t.now-last < clockMark {
		return nil
	}
	t.after = append(t.after, func() { t.store.owner.marked.Store(t.now) })
	return t.run(sqlText["keep_clock"], fmt.Sprint(t.now))
}
