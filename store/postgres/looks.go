package postgres

import (
	"sync"
	"time"
)

// Each claim looks first whether a lease is over. Rows of leases that ended lie in the
// indexes by the time of their end until PostgreSQL removes them, and a transaction that
// stays open anywhere in the database keeps it from that. So that claims do not step over
// all of them again and again, one looks only behind the moment up to which this process
// has looked before. A lease that became visible after its own end is found by the next
// look at everything.

// A process looks at everything once in a while, and more rarely where that takes long.
const (
	wholeLook = time.Second
	lookShare = 50 // of the time may go into that: one part in so many
)

// looks are those for leases that are over.
type looks struct {
	mu   sync.Mutex
	at   int64     // nothing is over that ended up to here
	next time.Time // when everything is looked at
}

// since is the moment after which to look, 0 for a look at everything.
func (l *looks) since() (since int64, whole bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if whole = !time.Now().Before(l.next); whole {
		return 0, true
	}
	return l.at, false
}

// note says that nothing was found up to a moment, and since when it was looked for.
func (l *looks) note(now int64, whole bool, began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = now
	if whole {
		l.next = time.Now().Add(max(wholeLook, lookShare*time.Since(began)))
	}
}

// sinceOf is the moment after which to look, from an argument: everything is looked at
// if the clock was set back.
func sinceOf(arg string) string {
	return "case when " + arg + "::bigint <= now then " + arg + " else 0 end"
}
