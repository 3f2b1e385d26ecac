package console_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie/console"
)

// Two questions are asked at the same time and not more, and all end before the first error is
// returned.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second := errors.New("first"), errors.New("second")
		var lock sync.Mutex
		asked, now, most := 0, 0, 0
		ask := func(err error) func() error {
			return func() error {
				lock.Lock()
				asked, now = asked+1, now+1
				most = max(most, now)
				lock.Unlock()
				time.Sleep(time.Second) // of the bubble
				lock.Lock()
				now--
				lock.Unlock()
				return err
			}
		}
		err := console.AtOnce(t.Context(), ask(nil), ask(first), ask(nil), ask(second), ask(nil))
		if !errors.Is(err, first) || asked != 5 || now != 0 || most != 2 {
			t.Errorf("the error is %v, %d were asked, %d at the same time", err, asked, most)
		}
		if err := console.AtOnce(t.Context()); err != nil {
			t.Errorf("no question: %v", err)
		}
	})
}

// A question that panics does so in the goroutine of who asked, which can survive it and says where
// it was.
func TestAtOnceInPanic(t *testing.T) {
	t.Parallel()
	defer func() {
		if cause, _ := recover().(string); !strings.HasPrefix(cause, "a bug\n") || !strings.Contains(cause, "atonce_test.go") {
			t.Errorf("the caller's panic is %q", cause)
		}
	}()
	err := console.AtOnce(t.Context(), func() error { return nil }, func() error { panic("a bug") })
	t.Errorf("it returned %v", err)
}
