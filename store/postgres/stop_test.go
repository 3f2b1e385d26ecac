//go:build unix

package postgres_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// TestR12_StoppedPastItsLease stops a holder for longer than its lease. Others get
// the messages as abandoned, and what the first does after it goes on is refused
// and changes nothing: nothing ends twice (B010).
func TestR12_StoppedPastItsLease(t *testing.T) {
	const messages = 12
	list, schema := crowd(t, 1)
	s := list[0]
	for i := range messages {
		_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: fmt.Sprint(i), Priority: i % 2})
		must(t, err)
	}
	holder := startChild(t, "hold", schema)
	if words := holder.Line(); words[1] != fmt.Sprint(messages) {
		t.Fatal(words)
	}
	holder.Signal(syscall.SIGSTOP)
	source := store.NewSource(s, "q")
	mine := map[string]*nixie.Delivery{}
	for len(mine) < messages {
		ds, err := source.Receive(t.Context(), nixie.Want{Max: 100, Wait: 20 * time.Second, Lease: time.Hour})
		must(t, err)
		for _, d := range ds {
			if !d.Abandoned || d.Crashes != 1 || d.Lease.Number != 2 || d.Attempts != 0 {
				t.Fatalf("%+v", d)
			}
			mine[d.Key] = d
		}
	}
	half := messages / 2
	complete := func(keys ...int) {
		for _, k := range keys {
			must(t, s.Settle(t.Context(), []nixie.Settlement{{Delivery: mine[fmt.Sprint(k)], Verb: nixie.Complete}})[0])
		}
	}
	for k := range half {
		complete(k)
	}
	holder.Signal(syscall.SIGCONT)
	holder.GoOn()
	for range messages {
		if words := holder.Line(); words[1] != string(nixie.CodeLeaseLost) || words[2] != string(nixie.CodeLeaseLost) {
			t.Errorf("late calls were answered %q", words)
		}
	}
	holder.Wait()
	for k := half; k < messages; k++ {
		complete(k)
	}
	records, _, err := s.Messages(t.Context(), nixie.Filter{}, store.Page{Whole: true})
	must(t, err)
	for _, r := range records {
		if r.State != nixie.Succeeded || r.Deliveries != 2 || len(r.History) != 0 {
			t.Errorf("a late call changed message %s: %+v", r.Key, r)
		}
	}
	if len(records) != messages {
		t.Errorf("%d messages", len(records))
	}
	sound(t, s)
}
