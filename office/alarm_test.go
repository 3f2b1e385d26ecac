package office_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

// chat is an alarm that fails while it is down, and always for one group.
type chat struct {
	*watched
	down   bool
	hates  string
	heard  []string
	failed []time.Duration // when, since the first look
	began  time.Time
}

func (c *chat) alarm(_ context.Context, n office.News) error {
	if !n.NewGroup || len(n.Letters) == 0 {
		c.Errorf("no new group: %+v", n)
	}
	if c.down || n.Fingerprint == c.hates {
		c.failed = append(c.failed, c.now.Sub(c.began))
		return errors.New("answered 500")
	}
	c.heard = append(c.heard, fmt.Sprintf("%s +%d", n.Fingerprint, n.Added))
	return nil
}

// watch runs a watch with a name, and returns what the alarm told in it.
func (c *chat) watch(ask office.WatchRequest, acts ...func()) []string {
	c.Helper()
	c.began, c.heard, c.failed = c.now, nil, nil
	ask.Alarm, ask.Name, ask.FromNow = c.alarm, "chat", true
	c.follow(ask, acts...)
	return c.heard
}

// A new group is told although its alarm failed, the watch was not there, or both.
func TestAlarmsThatFailAreCalledAgain(t *testing.T) {
	c := &chat{watched: newWatched(t)}
	c.die("old", 3)
	c.told(c.watch(office.WatchRequest{}))
	c.told(c.watch(office.WatchRequest{}, func() { c.die("old", 1) }))
	c.down = true
	c.told(c.watch(office.WatchRequest{}, func() { c.die("first", 1) }, func() { c.die("first", 2) }))
	c.die("meanwhile", 1)
	c.resolveAll("old", store.OnDiscard)
	c.down = false
	c.told(c.watch(office.WatchRequest{}), "first +3", "meanwhile +1")
	c.told(c.watch(office.WatchRequest{}))

	// One that is resolved meanwhile is told no more.
	c.down = true
	c.watch(office.WatchRequest{}, func() { c.die("solved", 1) })
	c.resolveAll("solved", store.OnDiscard)
	c.down = false
	c.told(c.watch(office.WatchRequest{}))

	// A cursor and a look that is the only one go on too, and another name begins anew.
	c.down = true
	c.die("late", 1)
	c.told(c.watch(office.WatchRequest{Once: true}))
	c.down = false
	c.told(c.watch(office.WatchRequest{Once: true}), "late +1")
}

// The tries come after 1, 2, 4 … seconds and at last every 5 minutes; they hold up no other group.
func TestAlarmsWait(t *testing.T) {
	c := &chat{watched: newWatched(t), hates: "hated"}
	nothing := func() {}
	acts := []func(){func() { c.die("hated", 1) }}
	for range 60 {
		acts = append(acts, nothing)
	}
	acts = append(acts, func() { c.die("good", 1) })
	c.told(c.watch(office.WatchRequest{Interval: 10 * time.Minute}, acts...), "good +1")
	var waits []time.Duration
	for i := range 11 {
		waits = append(waits, (c.failed[i+1] - c.failed[i]).Round(time.Second))
	}
	want := "[1s 2s 4s 8s 16s 32s 1m4s 2m8s 4m16s 5m0s 5m0s]"
	if fmt.Sprint(waits) != want {
		t.Errorf("tries after %s, want %s", waits, want)
	}
}

// What is kept and cannot be read is an error, and no watch from now on.
func TestAlarmsOfADamagedState(t *testing.T) {
	c := &chat{watched: newWatched(t)}
	if _, err := c.st.Features().Documents.Write(t.Context(), store.Writing{Changes: []store.DocumentChange{{
		DocumentKey: store.DocumentKey{Space: "watch", Key: "chat"}, Verb: store.PutDocument, Value: json.RawMessage(`[]`),
	}}}); err != nil {
		t.Fatal(err)
	}
	_, err := c.o.Watch(t.Context(), office.WatchRequest{Name: "chat", Once: true}, nil)
	if nixie.CodeOf(err) != nixie.CodeInternal {
		t.Errorf("error is %v", err)
	}
}
