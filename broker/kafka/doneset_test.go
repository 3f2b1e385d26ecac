package kafka

import (
	"math/rand/v2"
	"testing"
)

// A doneSet equals a simple set of offsets, and survives its metadata.
func TestDoneSet(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 7))
		n, want := doneSet{}, map[int64]bool{}
		for range rng.IntN(60) {
			from := rng.Int64N(100)
			to := from + rng.Int64N(6)
			for o := from; o < to; o++ {
				want[o] = true
			}
			n.add(doneRange{from, to})
		}
		again := parseDoneSet(n.base, n.metadata())
		other := doneSet{}
		other.merge(again)
		for o := range int64(110) {
			if n.has(o) != want[o] || again.has(o) != want[o] || other.has(o) != want[o] {
				t.Fatalf("seed %d, offset %d: has %v, read %v, joined %v, want %v: %+v", seed, o, n.has(o), again.has(o), other.has(o),
					want[o], n)
			}
		}
		for i := 1; i < len(n.ranges); i++ {
			if n.ranges[i-1].to >= n.ranges[i].from || n.ranges[0].from <= n.base {
				t.Fatalf("seed %d: %+v", seed, n)
			}
		}
	}
}

// As many offsets fit into the metadata as capacity tells, wherever they lie.
func TestDoneSetCapacity(t *testing.T) {
	for _, gap := range []int64{2, 200, 20_000, 1 << 22} {
		n := doneSet{base: 1 << 34}
		at := n.base
		for n.capacity() > 0 {
			for range n.capacity() {
				at += gap
				n.add(doneRange{at, at + 1})
			}
			if size := len(n.metadata()); size > MaxMetadata {
				t.Fatalf("gap %d: %d bytes", gap, size)
			}
		}
		if len(n.ranges) < 200 {
			t.Errorf("gap %d: only %d", gap, len(n.ranges))
		}
	}
}

func FuzzDoneSet(f *testing.F) {
	good := doneSet{base: 3, ranges: []doneRange{{5, 9}, {100, 101}}}
	f.Add(int64(3), good.metadata())
	f.Add(int64(-1), "nixie done=////////////")
	f.Add(int64(0), "nixie crashes=3 of=1 alone=2")
	f.Fuzz(func(t *testing.T, base int64, text string) {
		n := parseDoneSet(base&(1<<40-1), text)
		if again := parseDoneSet(n.base, n.metadata()); again.metadata() != n.metadata() || again.base != n.base {
			t.Fatalf("%+v, then %+v", n, again)
		}
	})
}
