package postgres

import (
	"reflect"
	"testing"

	"github.com/nixie-go/nixie"
)

// TestWaitingCallsAreCopied changes all that a caller has of a message while its call
// waits, as one does that has left.
func TestWaitingCallsAreCopied(t *testing.T) {
	message := func() *nixie.Message {
		return &nixie.Message{
			Queue: "q", Body: []byte("body"), Headers: []nixie.Header{{Name: "a", Value: "b"}},
			Origin: &nixie.Origin{System: "s", Key: []byte("key")},
		}
	}
	given := message()
	g, c := &groupCommit{running: true}, &groupCall{rows: []messageRow{{given: given}}}
	if g.begin(c) {
		t.Fatal("it goes while another runs")
	}
	given.Queue, given.Body[0], given.Headers[0].Value, given.Origin.System, given.Origin.Key[0] = "x", 'x', "x", "x", 'x'
	if kept := c.rows[0].given; !reflect.DeepEqual(kept, message()) {
		t.Errorf("what waits is %+v from %+v", kept, kept.Origin)
	}
}

// TestGroupsOfCalls lets calls come while one runs: they go in groups, in their order and
// within the bounds, and when none is left the next goes at once.
func TestGroupsOfCalls(t *testing.T) {
	g := &groupCommit{}
	alone := new(groupCall)
	if !g.begin(alone) {
		t.Fatal("a lone call waits")
	}
	big := func() *groupCall { return &groupCall{rows: make([]messageRow, maxGroup/2), size: 1} }
	calls := []*groupCall{big(), big(), big(), {size: maxGroupSize}, {size: 1}}
	for i, c := range calls {
		for j := range c.rows {
			c.rows[j].given = new(nixie.Message)
		}
		if g.begin(c) {
			t.Fatalf("call %d goes while another runs", i)
		}
	}
	for group, want := range [][]*groupCall{calls[:2], calls[2:3], calls[3:4], calls[4:]} {
		if got := g.take(0); !reflect.DeepEqual(got, want) {
			t.Fatalf("group %d has %d calls, want %d", group, len(got), len(want))
		}
		if !g.running {
			t.Fatalf("group %d: another call would go at the same time", group)
		}
	}
	if got := g.take(0); got != nil {
		t.Errorf("%d calls are left", len(got))
	}
	if !g.begin(alone) {
		t.Error("no call is left, and another one waits")
	}
}
