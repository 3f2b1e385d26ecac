package kafka

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// A record that kills its holders is dead after log2 of what runs at once and two kills. All other
// records succeed, and each runs at most once more per kill.
func TestPoisonIsIsolated(t *testing.T) {
	for _, members := range []int{1, 3} {
		t.Run(fmt.Sprint(members), func(t *testing.T) {
			t.Parallel()
			for at := range 3 {
				poisoned(t, fake(t), members, 50+20*at)
			}
		})
	}
}

// The same on a real broker.
func TestPoisonIsIsolatedOnARealBroker(t *testing.T) {
	t.Parallel()
	poisoned(t, actual(t), 1, 70)
}

func poisoned(t *testing.T, b *fixture, members, bad int) {
	const records, most = 240, 5
	b.parallel = 8
	b.spread(t, records, bad)
	l, runs := newLedger(b), newLedger(b)
	var hands []*testMember
	dying := make(chan *testMember)
	begin := func() {
		self := make(chan *testMember, 1)
		h := b.start(t, func(ctx context.Context, d *nixie.Delivery) error {
			if string(d.Body) == poison {
				me := <-self
				dying <- me
				<-ctx.Done()
				return ctx.Err()
			}
			runs.note(d)
			sleep(ctx, time.Millisecond)
			if ctx.Err() == nil {
				l.note(d)
			}
			return ctx.Err()
		}, nil)
		self <- h
		hands = append(hands, h)
	}
	for range members {
		begin()
	}
	kills, over := 0, make(chan struct{})
	go func() { l.until(t, records-1); close(over) }()
	for done := false; !done; {
		select {
		case h := <-dying:
			if kills++; kills > most {
				t.Errorf("%d kills", kills)
			}
			h.crash(t, b)
			hands = slices.DeleteFunc(hands, func(other *testMember) bool { return other == h })
			begin()
		case <-over:
			over = nil
		case <-time.After(10 * time.Millisecond):
			done = over == nil && len(b.Records(t, b.letters)) > 0
		}
	}
	for _, h := range hands {
		h.leave(t)
	}
	letters := b.Records(t, b.letters)
	if len(letters) != 1 || string(letters[0].Value) != poison || header(&letters[0], broker.HeaderReason) != "poison" {
		t.Errorf("%d letters: %+v", len(letters), letters)
	}
	runs.mu.Lock()
	defer runs.mu.Unlock()
	for at, offsets := range runs.done {
		for offset, n := range offsets {
			if n > 1+kills {
				t.Errorf("%d/%d ran %d times with %d kills", at.partition, offset, n, kills)
			}
		}
	}
	t.Logf("%d kills", kills)
}

// spread adds records to all partitions; one of them kills.
func (b *fixture) spread(t testing.TB, n, bad int) {
	t.Helper()
	var list []*kgo.Record
	for i := range n {
		r := &kgo.Record{Topic: b.source, Key: fmt.Append(nil, i), Value: fmt.Append(nil, fine, " ", i)}
		if i == bad {
			r.Value = []byte(poison)
		}
		list = append(list, r)
	}
	if err := b.client.ProduceSync(limited(t), list...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// Ten kills of consumers with healthy records make none of these a letter.
func TestTenKillsOverHealthyRecords(t *testing.T) {
	t.Parallel()
	const records, kills = 240, 10
	b := fake(t)
	b.parallel = 8
	b.spread(t, records, -1)
	l := newLedger(b)
	var mu sync.Mutex
	handle := func(ctx context.Context, d *nixie.Delivery) error {
		sleep(ctx, time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() == nil {
			l.note(d)
		}
		return ctx.Err()
	}
	for n := range kills {
		h := b.start(t, handle, nil)
		l.until(t, records*(n+1)/(kills+2))
		h.crash(t, b)
	}
	last := b.start(t, handle, nil)
	l.until(t, records)
	last.leave(t)
	if letters := b.Records(t, b.letters); len(letters) > 0 {
		t.Errorf("%d letters", len(letters))
	}
}

// Only one partition with suspects hands out some at a time. So a crash blames only a record that
// was alone, and the second such crash in a row convicts it.
func TestSuspectsOfOnePartitionAtATime(t *testing.T) {
	b := fake(t)
	const records = 24
	b.spread(t, records, -1)
	first := b.Join(t).(*Driver)
	take(t, first, records)
	b.Crash(t, first)
	alone := map[topicPartition]int{}
	for {
		d := b.Join(t).(*Driver)
		r := take(t, d, 1)[0]
		at := topicPartition{r.Channel, r.Partition}
		if r.Offset != 0 || r.Crashes != 1+alone[at] || r.Alone != (alone[at] > 1) {
			t.Errorf("%d of partition %d: %d crashes, alone %v; it was so %d times", r.Offset, r.Partition, r.Crashes, r.Alone, alone[at])
		}
		if more, err := d.Receive(limited(t), broker.Want{Max: records, Wait: 20 * time.Millisecond}); len(more) > 0 || err != nil {
			t.Fatalf("%d more are in hand, %v", len(more), err)
		}
		if r.Alone {
			all(t, d.Ack(t.Context(), []*broker.Record{r}))
			if next := take(t, d, 1)[0]; next.Offset > 0 && next.Crashes > 0 {
				t.Error("those behind it are suspects as well")
			}
			closed(t, d)
			return
		}
		alone[at]++
		b.Crash(t, d)
	}
}
