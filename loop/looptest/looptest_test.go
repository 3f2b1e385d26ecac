package looptest_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/loop/looptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Each call of a mailbox says that it cannot be reached, and works again after that.
func TestFail(t *testing.T) {
	box := looptest.New[string, string](t, "orders", loop.Config{})
	if _, err := box.Send(t.Context(), "body", loop.ReplyTo("answers")); err != nil {
		t.Fatal(err)
	}
	got, err := box.Receive(t.Context())
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	m := got[0]
	calls := map[string]func() error{
		"send":    func() error { _, err := box.Send(t.Context(), "body"); return err },
		"receive": func() error { _, err := box.Receive(t.Context()); return err },
		"count":   func() error { _, err := box.ApproximateCount(t.Context()); return err },
		"purge":   func() error { _, err := box.Purge(t.Context()); return err },
		"extend":  func() error { return m.Extend(t.Context(), time.Minute) },
		"reply":   func() error { _, err := m.Reply(t.Context(), "half"); return err },
	}
	box.Store.Fail(nixie.Errorf(nixie.CodeUnavailable, "the line is down"))
	for name, call := range calls {
		if err := call(); !errors.Is(err, loop.ErrConnection) {
			t.Errorf("%s: %v, want a failed connection", name, err)
		}
	}
	if err := m.Acknowledge(t.Context()); !errors.Is(err, loop.ErrConnection) || m.Finalized() {
		t.Errorf("acknowledge: %v, finalized %v", err, m.Finalized())
	}
	box.Store.Fail(nil)
	for name, call := range calls {
		if err := call(); err != nil {
			t.Errorf("%s after that: %v", name, err)
		}
	}
	if err := m.Acknowledge(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestExpire(t *testing.T) {
	box := looptest.New[string, string](t, "orders", loop.Config{})
	if _, err := box.Send(t.Context(), "body"); err != nil {
		t.Fatal(err)
	}
	first, err := box.Receive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	box.Expire(t, first[0])
	second, err := box.Receive(t.Context())
	if err != nil || len(second) != 1 || second[0].DeliveryCount() != 2 {
		t.Fatal(second, err)
	}
	if err := first[0].Acknowledge(t.Context()); !errors.Is(err, loop.ErrReceiptHandleExpired) {
		t.Errorf("the handle that expired: %v", err)
	}
}

func TestTargets(t *testing.T) {
	var answers looptest.Collector[int]
	if id, err := (looptest.Null{}).Put(t.Context(), "anything"); err != nil || id.IsZero() {
		t.Error(id, err)
	}
	if _, err := answers.Put(t.Context(), "text"); !errors.Is(err, loop.ErrSerialization) {
		t.Errorf("a text for a number: %v", err)
	}
	if _, err := answers.Put(t.Context(), 7, nixie.WithHeader("a", "b")); err != nil {
		t.Error(err)
	}
	if ms := answers.Messages(); fmt.Sprint(answers.Bodies()) != "[7]" || len(ms) != 1 || ms[0].Header("a") != "b" {
		t.Errorf("collected %v", answers.Bodies())
	}
}
