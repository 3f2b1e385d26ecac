package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/worker"
)

// ledger counts the handled records, and checks that the group has not committed more than these.
type ledger struct {
	fixture *fixture
	mu      sync.Mutex
	changed *sync.Cond
	done    map[topicPartition]map[int64]int // how often each was handled
	all     int                              // distinct records
}

func newLedger(b *fixture) *ledger {
	l := &ledger{fixture: b, done: map[topicPartition]map[int64]int{}}
	l.changed = sync.NewCond(&l.mu)
	return l
}

func (l *ledger) note(d *nixie.Delivery) {
	l.markHandled(topicPartition{d.Origin.Channel, d.Origin.Partition}, d.Origin.Offset)
}

// markHandled counts a handled record.
func (l *ledger) markHandled(at topicPartition, offset int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done[at] == nil {
		l.done[at] = map[int64]int{}
	}
	if l.done[at][offset]++; l.done[at][offset] == 1 {
		l.all++
	}
	l.changed.Broadcast()
}

// count returns how many distinct records were handled.
func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}

// until waits until n distinct records were handled.
func (l *ledger) until(t testing.TB, n int) {
	t.Helper()
	late := false
	timer := time.AfterFunc(testTimeout, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		late = true
		l.changed.Broadcast()
	})
	defer timer.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.all < n {
		if late {
			t.Fatalf("%d of %d records were handled: %v%s", l.all, n, l.done, l.fixture.state())
		}
		l.changed.Wait()
	}
}

// state tells what members have in hand, and hold back, of each partition: a test prints it when
// it waited in vain.
func (b *fixture) state() string {
	var text strings.Builder
	for of := range b.ends {
		d, is := of.(*Driver)
		if !is {
			continue
		}
		d.mu.Lock()
		fmt.Fprintf(&text, "\nmember %q: thrown out %t, error of commits %v", d.member, d.thrownOut, d.commitErr)
		for at, p := range d.partitions {
			fmt.Fprintf(&text, "\n  %v: next %d, committed %+v %t, %d in hand, %d held, paused %t, holder committed %t, leaving %t",
				at, p.next, p.committed, p.hasCommitted, p.len(), len(p.held), p.paused, p.holderCommitted, p.leaving)
		}
		d.mu.Unlock()
	}
	return text.String()
}

// check compares the commits with the handled records: each record before a committed offset was
// handled, or is on a stage. It returns how many are committed.
func (l *ledger) check(t testing.TB) (committed int64) {
	t.Helper()
	offsets := l.fixture.offsets(limited(t), t)
	waiting := map[string]bool{}
	for _, s := range l.fixture.stages {
		for _, r := range l.fixture.Records(t, s.Of(l.fixture.source)) {
			waiting[header(&r, broker.HeaderPartition)+"/"+header(&r, broker.HeaderOffset)] = true
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for n, o := range offsets[l.fixture.source] {
		for before := range o.At {
			if l.done[topicPartition{l.fixture.source, n}][before] == 0 && !waiting[fmt.Sprint(n, "/", before)] {
				t.Fatalf("partition %d: %d is committed, and %d was not handled", n, o.At, before)
			}
		}
		committed += o.At
	}
	return committed
}

// testMember is a member of a group with a worker.
type testMember struct {
	driver *Driver
	end    context.CancelFunc
	worker *worker.Worker
	stop   context.CancelFunc
	ran    chan error
}

// start makes a member of the group that handles records.
func (b *fixture) start(t testing.TB, handle func(context.Context, *nixie.Delivery) error,
	change func(*Config, *broker.Config, *policy.Config)) *testMember {
	t.Helper()
	h := &testMember{ran: make(chan error, 1)}
	source, rules := broker.Config{Letters: broker.DefaultLetters}, policy.Config{Backoff: policy.Backoff{Base: -1}}
	h.driver, h.end = b.open(t, func(c *Config) {
		c.Stages = b.stages
		if change != nil {
			change(c, &source, &rules)
		}
	})
	b.ends[h.driver] = h.end
	source.Driver = h.driver
	if b.around != nil {
		source.Driver = b.around(h.driver)
	}
	s, err := broker.New(source)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.New(rules)
	if err != nil {
		t.Fatal(err)
	}
	if h.worker, err = worker.New(worker.Config{Source: s, Policy: p, Handler: nixie.HandlerFunc(handle),
		Concurrency: cmp.Or(b.parallel, 4), Drain: cmp.Or(b.drain, -1), Name: "hand"}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	h.stop = stop
	go func() { h.ran <- h.worker.Run(ctx) }()
	return h
}

// leave ends a member in good order.
func (h *testMember) leave(t testing.TB) {
	t.Helper()
	h.stop()
	if err := <-h.ran; err != nil {
		t.Error(err)
	}
	if err := h.driver.Close(limited(t)); err != nil {
		t.Error(err)
	}
}

// crash ends a member without closing it.
func (h *testMember) crash(t testing.TB, b *fixture) {
	t.Helper()
	b.ends[h.driver] = h.end
	b.Crash(t, h.driver)
	h.stop()
	h.worker.Abort()
	<-h.ran //nolint:errcheck // what it says does not matter
}

// kick removes a member from the group, as a coordinator does that missed its heartbeats. The
// member does not know it yet.
func (b *fixture) kick(t testing.TB, d *Driver) {
	t.Helper()
	d.mu.Lock()
	group := d.group
	d.mu.Unlock()
	member, _ := group.GroupMetadata()
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group = d.c.Group
	leave.Members = []kmsg.LeaveGroupRequestMember{{MemberID: member}}
	if _, err := leave.RequestWith(limited(t), b.client); err != nil {
		t.Fatal(err)
	}
}

// Members join, leave, crash and are thrown out while they work. No record is lost, and the group
// never commits more than was handled.
func TestRebalances(t *testing.T) {
	proof.Run(t, "kafka-rebalances", func(t *testing.T, seed uint64) int { return changes(t, fake(t), seed) })
}

// The same on a real broker.
func TestRebalancesOnARealBroker(t *testing.T) {
	for seed := range uint64(2) {
		changes(t, actual(t), seed)
	}
}

// changes makes random changes of a group. Every second group has a stage for retries.
func changes(t *testing.T, b *fixture, seed uint64) int {
	const records, events = 600, 8
	if seed%2 == 0 {
		b.stages = []broker.Stage{{Channel: "{source}.retry.50ms", Delay: 50 * time.Millisecond}}
		b.create(t, 2, nil, b.stages[0].Of(b.source))
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	var list []broker.Publication
	for i := range records {
		list = append(list, broker.Publication{Channel: b.source, Key: fmt.Append(nil, rng.IntN(50)), Value: fmt.Append(nil, i)})
	}
	b.Produce(t, list...)
	l := newLedger(b)
	handle := func(ctx context.Context, d *nixie.Delivery) error {
		if n := d.Origin.Offset; d.Attempts == 1 && n%13 == 0 {
			return nixie.Transient(errors.New("not now"))
		} else if n%29 == 0 {
			sleep(ctx, 5*time.Millisecond)
		}
		l.note(d)
		return nil
	}
	begin := func() *testMember {
		return b.start(t, handle, func(_ *Config, _ *broker.Config, p *policy.Config) {
			if len(b.stages) > 0 {
				p.Backoff = policy.Backoff{Formula: policy.Fixed, Base: 10 * time.Millisecond}
			}
		})
	}
	hands := []*testMember{begin()}
	for n := range events {
		l.until(t, records*(n+1)/(events+2))
		which := rng.IntN(len(hands))
		switch what := rng.IntN(4); {
		case what == 0 || len(hands) == 1 && what < 3:
			hands = append(hands, begin())
			continue
		case what == 1:
			hands[which].leave(t)
		case what == 2:
			hands[which].crash(t, b)
		default:
			b.kick(t, hands[which].driver)
			l.check(t)
			continue
		}
		l.check(t)
		hands = slices.Delete(hands, which, which+1)
	}
	l.until(t, records)
	for _, h := range hands {
		h.leave(t)
	}
	last := begin() // a member that was thrown out has not committed everything
	defer last.leave(t)
	at, ctx := l.check(t), limited(t)
	for ; at < records && ctx.Err() == nil; at = l.check(t) {
		sleep(ctx, 5*time.Millisecond)
	}
	if at != records {
		t.Errorf("%d of %d are committed in the end", at, records)
	}
	return events
}

// sleep waits as long as a handler works.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
