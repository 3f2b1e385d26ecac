package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
)

// backlog hands out numbered messages of queues.
type backlog struct {
	Queue
	left   map[string]int
	crash  map[string]int // this many of the first are suspects
	broken string         // a queue that cannot be claimed from
}

func (b *backlog) Claim(_ context.Context, queue string, want nixie.Want) ([]*nixie.Delivery, error) {
	if queue == b.broken {
		return nil, errors.New("broken")
	}
	if b.crash[queue] > 0 {
		if want.NoSuspects {
			return nil, nil
		}
		b.crash[queue]--
		return []*nixie.Delivery{{Message: nixie.Message{Queue: queue, Crashes: 1}}}, nil
	}
	n := min(b.left[queue], want.Max)
	b.left[queue] -= n
	got := make([]*nixie.Delivery, n)
	for i := range got {
		got[i] = &nixie.Delivery{Message: nixie.Message{Queue: queue}}
	}
	return got, nil
}

func (*backlog) Features() Features { return Features{} }

func queuesOf(ds []*nixie.Delivery) string {
	var names []string
	for _, d := range ds {
		names = append(names, d.Queue)
	}
	slices.Sort(names)
	return strings.Join(names, "")
}

// Several queues share a batch. A queue uses the share that another leaves.
func TestSourceShares(t *testing.T) {
	b := &backlog{left: map[string]int{"a": 100, "b": 100, "c": 1}}
	s := NewSource(b, "a", "b", "c")
	for range 3 {
		got, err := s.Receive(t.Context(), nixie.Want{Max: 9})
		if n := queuesOf(got); err != nil || len(n) != 9 || strings.Count(n, "a") < 3 || strings.Count(n, "b") < 3 {
			t.Errorf("got %q, %v", n, err)
		}
	}
	if b.left["c"] != 0 {
		t.Error("the small queue got nothing")
	}
}

// Within a batch the queues alternate, as long as each has messages. So a short queue does not wait
// until a long one is done.
func TestSourceAlternates(t *testing.T) {
	got, err := NewSource(&backlog{left: map[string]int{"a": 100, "b": 2}}, "a", "b").Receive(t.Context(), nixie.Want{Max: 20})
	if err != nil || len(got) != 20 {
		t.Fatal(len(got), err)
	}
	if n := queuesOf(got[:4]); n != "aabb" {
		t.Errorf("the first four are of %q", n)
	}
}

// With room for one message, the queues alternate.
func TestSourceTakesTurns(t *testing.T) {
	b := &backlog{left: map[string]int{"a": 100, "b": 100, "c": 100}}
	s := NewSource(b, "a", "b", "c")
	var got []*nixie.Delivery
	for range 9 {
		ds, err := s.Receive(t.Context(), nixie.Want{Max: 1})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, ds...)
	}
	if n := queuesOf(got); n != "aaabbbccc" {
		t.Errorf("got %q", n)
	}
}

// A suspect comes alone also from a source of several queues, and does not wait for ever.
func TestSourceHandsOutSuspectsAlone(t *testing.T) {
	b := &backlog{left: map[string]int{"a": 6, "b": 6}, crash: map[string]int{"a": 1}}
	s := NewSource(b, "a", "b")
	suspects := 0
	for range 6 {
		ds, err := s.Receive(t.Context(), nixie.Want{Max: 4})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range ds {
			if d.Crashes > 0 {
				suspects++
				if len(ds) > 1 {
					t.Errorf("a suspect comes with %d others", len(ds)-1)
				}
			}
		}
	}
	if suspects != 1 || b.left["a"]+b.left["b"] != 0 {
		t.Errorf("%d suspects, left %v", suspects, b.left)
	}
}

// When one queue fails, the messages claimed from others before are not lost.
func TestSourceKeepsWhatItHas(t *testing.T) {
	b := &backlog{left: map[string]int{"a": 10}, broken: "b"}
	s := NewSource(b, "a", "b")
	taken, failed := 0, 0
	for range 4 {
		ds, err := s.Receive(t.Context(), nixie.Want{Max: 2})
		taken += len(ds)
		if err != nil {
			failed++
		}
		if err != nil && len(ds) > 0 {
			t.Errorf("%d deliveries with %v", len(ds), err)
		}
	}
	if taken+b.left["a"] != 10 || taken == 0 || failed == 0 {
		t.Errorf("taken %d, left %d, failed %d", taken, b.left["a"], failed)
	}
}
