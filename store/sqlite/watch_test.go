package sqlite_test

import (
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/store/storetest"
)

// TestWatchReadsQueuesWhenSomethingChanged shows at which polls the watch reads more than a number:
// when a process has committed, when a message is due or a queue is new to it, and now and then.
func TestWatchReadsQueuesWhenSomethingChanged(t *testing.T) {
	path := storePath(t)
	clock := storetest.NewClock()
	s, other := open(t, path, sqlite.Options{Reserve: -1, Clock: clock.Now}), open(t, path, sqlite.Options{Reserve: -1, Clock: clock.Now})
	pollEvery := func(want bool, why string) {
		t.Helper()
		read, err := s.Poll(t.Context(), "q")
		must(t, err)
		if read != want {
			t.Errorf("it read: %v, want %v: %s", read, want, why)
		}
	}
	pollEvery(true, "the first time")
	for range 20 {
		pollEvery(false, "nothing happened")
	}
	pollEvery(true, "a second is over, and processes may have died")
	_, err := other.Enqueue(t.Context(), nixie.Message{Queue: "q", Delay: time.Hour})
	must(t, err)
	pollEvery(true, "another process has committed")
	pollEvery(false, "and nothing since")
	_, err = s.Enqueue(t.Context(), nixie.Message{Queue: "q", Delay: 30 * time.Minute})
	must(t, err)
	pollEvery(true, "this process has committed")
	pollEvery(false, "and nothing since")
	clock.Advance(31 * time.Minute)
	pollEvery(true, "something is due")
	for range 3 { // a claim may not have taken it
		for range 20 {
			pollEvery(false, "and nothing more is")
		}
		pollEvery(true, "it is still there after a second")
	}
	read, err := s.Poll(t.Context(), "q", "r")
	must(t, err)
	if !read {
		t.Error("it did not read a queue that was new to it")
	}
}
