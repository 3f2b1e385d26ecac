package console

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

const (
	searchPatience = 10 * time.Second // for a search to begin, before its page says that it waits
	searchTold     = time.Second      // a page whose search waited longer says so
)

// searches lets one search run at a time: each reads letters one by one, on connections and
// processors that all other pages need. A person waits for those persons who came before, and for
// one page that is watched; the other pages that are watched wait for each other.
type searches struct {
	running chan struct{} // has one element while a search runs
	watched chan struct{} // has one element while the search of a page that is watched runs, or is the next of those
	waiting atomic.Int64  // persons
}

func newSearches() *searches {
	return &searches{running: make(chan struct{}, 1), watched: make(chan struct{}, 1)}
}

// busyError says that a search could not begin within searchPatience.
type busyError struct{ others int64 }

func (e *busyError) Error() string {
	return "Searches read letters one by one, so one runs at a time. This one still waits, and " + plural(e.others, "other") + " with it."
}

// ofPerson waits until a search may run, and until the client goes, at most for searchPatience. The
// caller calls end when the search is over.
func (s *searches) ofPerson(ctx context.Context) (end func(), waited time.Duration, err error) {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	began := time.Now()
	patient, stop := context.WithTimeout(ctx, searchPatience)
	defer stop()
	select {
	case s.running <- struct{}{}:
		return func() { <-s.running }, time.Since(began), nil
	case <-patient.Done():
	}
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	return nil, 0, &busyError{s.waiting.Load() - 1}
}

// ofWatched waits until the search of a page that is watched may run. The caller calls end when it
// is over.
func (s *searches) ofWatched() (end func()) {
	s.watched <- struct{}{}
	s.running <- struct{}{}
	return func() { <-s.running; <-s.watched }
}

// isSearch reports whether the answer to a request reads letters one by one: its filter asks for
// what no store counts.
func (c *console) isSearch(r *http.Request) bool {
	f, err := office.ParseFilter(r.FormValue("filter"), c.Clock())
	rest := nixie.Filter{States: f.States, Streams: f.Streams, Text: f.Text, Due: f.Due, FirstFailed: f.FirstFailed,
		LastFailed: f.LastFailed, Deliveries: f.Deliveries, Operation: f.Operation}
	return err == nil && !rest.IsZero()
}
