package console_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/nixie-go/nixie/console"
)

// Questions are asked at the same time, and all end before the first error is returned.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	var both sync.WaitGroup
	both.Add(2)
	meet := func() error { both.Done(); both.Wait(); return nil }
	first, second := errors.New("first"), errors.New("second")
	asked := false
	fail := func(err error) func() error { return func() error { return err } }
	err := console.AtOnce(meet, fail(first), meet, fail(second), func() error { asked = true; return nil })
	if !errors.Is(err, first) || !asked {
		t.Errorf("the error is %v, all were asked %t", err, asked)
	}
	if err := console.AtOnce(); err != nil {
		t.Errorf("no question: %v", err)
	}
}

// A question that panics does so in the goroutine of who asked, which can survive it.
func TestAtOnceInPanic(t *testing.T) {
	t.Parallel()
	defer func() {
		if cause := recover(); cause != "a bug" {
			t.Errorf("the caller's panic is %v", cause)
		}
	}()
	err := console.AtOnce(func() error { return nil }, func() error { panic("a bug") })
	t.Errorf("it returned %v", err)
}
