package histories

import (
	"sync"
	"testing"
	"time"
)

// Harness says how to get a store whose histories are checked.
type Harness struct {
	// Open makes a new and empty store that tells the time by clock. It ends
	// the test when it cannot.
	Open func(t testing.TB, clock *Clock) Shared
	// Told says that a call brings the time along, as it was when the call was sent:
	// calls that are sent later may come before it.
	Told bool
}

// Shared is one store that several clients use. Its functions are called from one
// goroutine at a time.
type Shared struct {
	// Join opens the store once more in this process. No owner's name is used
	// twice, and it is shown as the holder of leases.
	Join func(owner string) (Client, error)
	// Spawn does the same in a process of its own; nil: there are none.
	Spawn func(owner string) (Client, error)
	// Effects reads the ledger; nil: the store has no transactions.
	Effects func() ([]Effect, error)
	// Close removes the store. All clients are closed by then.
	Close func() error
}

// Clock is the time of a history, which only its clients move. It is safe for
// concurrent use.
type Clock struct {
	mu   sync.Mutex
	now  time.Time
	tell func(time.Time) error
}

// NewClock makes a clock that stands at a whole second in 2026, UTC.
func NewClock() *Clock {
	return &Clock{now: time.Date(2026, time.March, 14, 15, 0, 0, 0, time.UTC)}
}

// Now is the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Tell lets other processes know the time, now and whenever it moves. They know a
// new time before any client here does.
func (c *Clock) Tell(tell func(time.Time) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tell = tell
	return tell(c.now)
}

// advance moves the time on.
func (c *Clock) advance(d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := c.now.Add(d)
	if c.tell != nil {
		if err := c.tell(next); err != nil {
			return err
		}
	}
	c.now = next
	return nil
}
