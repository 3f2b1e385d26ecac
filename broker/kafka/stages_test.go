package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/policy"
)

// addStage adds a stage and its topic.
func (b *fixture) addStage(t testing.TB, delay time.Duration) string {
	t.Helper()
	b.stages = []broker.Stage{{Channel: "{source}.retry." + delay.String(), Delay: delay}}
	name := b.stages[0].Of(b.source)
	if made, err := Create(limited(t), Config{Seeds: b.seeds}, b.source, name); err != nil || !slices.Equal(made, []string{name}) {
		t.Fatal(made, err)
	}
	return name
}

func waitsFor(d time.Duration) func(*Config, *broker.Config, *policy.Config) {
	return func(_ *Config, _ *broker.Config, p *policy.Config) {
		p.Backoff = policy.Backoff{Formula: policy.Fixed, Base: d, Cap: d, Jitter: policy.JitterNone}
	}
}

// A retry goes to the group that failed, and not to other groups of the stage.
func TestGroupsShareAStage(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		stage := b.addStage(t, 20*time.Millisecond)
		b.fill(t, 5)
		var mu sync.Mutex
		seen := map[string][]int{}
		over := map[string]int{}
		changed := sync.NewCond(&mu)
		handler := func(group string, until int) func(context.Context, *nixie.Delivery) error {
			return func(_ context.Context, d *nixie.Delivery) error {
				mu.Lock()
				defer mu.Unlock()
				seen[group] = append(seen[group], d.Attempts)
				if d.Attempts < until {
					return errors.New("not yet")
				}
				over[group]++
				changed.Broadcast()
				return nil
			}
		}
		start := func(group string, until int) *testMember {
			return b.start(t, handler(group, until), func(c *Config, s *broker.Config, p *policy.Config) {
				c.Group = b.source + group
				waitsFor(10*time.Millisecond)(c, s, p)
			})
		}
		fails, fine := start("fails", 3), start("fine", 1)
		late := time.AfterFunc(testTimeout, changed.Broadcast)
		defer late.Stop()
		began := time.Now()
		mu.Lock()
		for (over["fails"] < 5 || over["fine"] < 5) && time.Since(began) < testTimeout {
			changed.Wait()
		}
		mu.Unlock()
		ctx, admin := limited(t), kadm.NewClient(b.client)
		for passed := int64(0); passed < 10 && ctx.Err() == nil; { // by the group that they are not for, too
			offsets, err := admin.FetchOffsets(ctx, b.source+"fine")
			if err != nil {
				t.Fatal(err)
			}
			passed = 0
			for _, o := range offsets[stage] {
				passed += o.At
			}
		}
		fails.leave(t)
		fine.leave(t)
		if len(seen["fine"]) != 5 || len(seen["fails"]) != 15 {
			t.Errorf("attempts %v", seen)
		}
		if n := len(b.Records(t, stage)); n != 10 {
			t.Errorf("%d retries", n)
		}
	})
}

// A member that only waits for records which are not due has nothing in hand. Its crash does not
// count, and the next member hands the records out when they are due.
func TestWaitingRetriesAreNotInHand(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) { waiting(t, make(t)) })
}

func waiting(t *testing.T, b *fixture) {
	stage := b.addStage(t, time.Hour)
	b.fill(t, 1)
	first := b.start(t, func(context.Context, *nixie.Delivery) error { return errors.New("later") }, waitsFor(time.Second))
	ctx := limited(t)
	waits := func(d *Driver) bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		for at, p := range d.partitions {
			if at.topic == stage && len(p.held) > 0 {
				return true
			}
		}
		return false
	}
	moved := func() bool { // or it would come from the source once more
		for part := range int32(3) {
			if offset, _ := b.groupState(t, part); offset == 1 {
				return true
			}
		}
		return false
	}
	waitUntil(t, func() bool { return waits(first.driver) && moved() })
	offsets, err := kadm.NewClient(b.client).FetchOffsets(ctx, b.source)
	if err != nil {
		t.Fatal(err)
	}
	for n, o := range offsets[stage] {
		if s := readSuspects(&o.Metadata); s.suspected() {
			t.Errorf("partition %d: %+v", n, s)
		}
	}
	first.crash(t, b)
	b.stages[0].Delay = time.Millisecond // for another member the clock says that it is due
	var got *nixie.Delivery
	var once sync.Once
	comes := make(chan struct{})
	second := b.start(t, func(_ context.Context, d *nixie.Delivery) error {
		once.Do(func() { got = d; close(comes) })
		return nil
	}, nil)
	select {
	case <-comes:
	case <-ctx.Done():
		t.Fatal("it did not come")
	}
	second.leave(t)
	if got.Attempts != 2 || got.Crashes != 0 || got.Abandoned {
		t.Errorf("attempts %d, crashes %d", got.Attempts, got.Crashes)
	}
}

// Records on a stage without valid headers, or from other programs, are handled like all others,
// and wait no longer.
func TestOddRetries(t *testing.T) {
	b := fake(t)
	stage := b.addStage(t, 50*time.Millisecond)
	odd := [][]broker.RecordHeader{
		nil,
		{{Name: broker.HeaderDue, Value: []byte("never")}},
		{{Name: broker.HeaderDue, Value: []byte("9999999999999999")}},
		{{Name: broker.HeaderDue, Value: []byte("-5")}, {Name: broker.HeaderAttempts, Value: []byte("-5")},
			{Name: broker.HeaderID, Value: []byte("x")}},
		{{Name: broker.HeaderHistory, Value: []byte(`{"failures":[{"message":7}]}`)}, {Name: broker.HeaderSteps, Value: []byte("{")}},
		{{Name: broker.HeaderOffset, Value: []byte("99999999999999999999")}, {Name: broker.HeaderPartition, Value: []byte("99999999999")},
			{Name: broker.HeaderTimestamp, Value: []byte("9999999999999999")}},
	}
	for n, headers := range odd {
		b.Produce(t, broker.Publication{Channel: stage, Key: []byte("one"), Value: fmt.Append(nil, n), Headers: headers})
	}
	h := b.start(t, func(_ context.Context, d *nixie.Delivery) error {
		if d.Attempts != 1 || d.Origin.Channel != b.source || d.ID.IsZero() || d.EnqueuedAt.After(time.Now()) {
			t.Errorf("%s: %+v", d.Body, d.Message)
		}
		return errBad
	}, nil)
	if got := b.lettersOf(t, len(odd)); len(got) != len(odd) {
		t.Errorf("%d letters", len(got))
	}
	h.leave(t)
}
