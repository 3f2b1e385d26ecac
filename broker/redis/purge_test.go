package redis

import (
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// A purge removes what waits, at most as many as it is asked for and the visible first. It leaves
// what a receiver has: that comes again if it is given back.
func TestPurgeLeavesWhatIsHeld(t *testing.T) {
	t.Parallel()
	f := actual(t)
	d := f.open(t, Config{})
	f.produce(t, 2, func(int) string { return fine })
	held := take(t, d, 2)
	f.produce(t, 3, func(int) string { return fine })
	for range 2 {
		f.Produce(t, broker.Publication{Channel: f.at.Mailbox, Value: []byte("delayed"), Delay: time.Hour})
	}
	var told []int64
	purge := func(most, want, visible, delayed int64) {
		t.Helper()
		n, err := d.Purge(t.Context(), f.at.Mailbox, most, func(n int64) { told = append(told, n) })
		s, looked := d.Look(t.Context(), f.at.Mailbox)
		if err != nil || looked != nil || n != want || s.Visible != visible || s.Delayed != delayed || s.Leased != 2 {
			t.Errorf("%d purged, want %d: %+v, %v, %v", n, want, s, err, looked)
		}
	}
	purge(2, 2, 1, 2)
	purge(2, 2, 0, 1)
	purge(1000, 1, 0, 0)
	purge(1000, 0, 0, 0)
	if len(told) != 3 {
		t.Errorf("it told of %v", told)
	}
	if err := d.Ack(t.Context(), pointers(held[:1]))[0]; err != nil {
		t.Error(err)
	}
	if err := d.Nack(t.Context(), []broker.Return{{Record: &held[1]}})[0]; err != nil {
		t.Error(err)
	}
	if again := take(t, d, 1)[0]; again.MessageID != held[1].MessageID || string(again.Value) != string(held[1].Value) {
		t.Errorf("%+v came back", again)
	}
	if err := d.Ack(t.Context(), pointers(held[:1]))[0]; nixie.CodeOf(err) != nixie.CodeLeaseLost {
		t.Errorf("twice: %v", err)
	}
}
