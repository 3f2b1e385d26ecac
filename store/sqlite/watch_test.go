package sqlite_test

import (
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/store/storetest"
)

// TestWatchLooksWhereSomethingIs says at which glances the watch looks at the queues: when
// somebody has committed, when something is due, and now and then.
func TestWatchLooksWhereSomethingIs(t *testing.T) {
	path := storePath(t)
	clock := storetest.NewClock()
	s, other := open(t, path, sqlite.Options{Reserve: -1, Clock: clock.Now}), open(t, path, sqlite.Options{Reserve: -1, Clock: clock.Now})
	glance := func(want bool, why string) {
		t.Helper()
		looked, err := s.Glance(t.Context(), "q")
		must(t, err)
		if looked != want {
			t.Errorf("it looked: %v, want %v: %s", looked, want, why)
		}
	}
	glance(true, "the first time")
	for range 20 {
		glance(false, "nothing happened")
	}
	glance(true, "a second is over")
	_, err := other.Enqueue(t.Context(), nixie.Message{Queue: "q", Delay: time.Hour})
	must(t, err)
	glance(true, "another process has committed")
	glance(false, "and nothing since")
	_, err = s.Enqueue(t.Context(), nixie.Message{Queue: "q", Delay: 30 * time.Minute})
	must(t, err)
	glance(true, "this process has committed")
	glance(false, "and nothing since")
	clock.Advance(31 * time.Minute)
	glance(true, "something is due")
	glance(false, "and nothing more is")
}
