package kafka

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/nixie-go/nixie/broker"
)

// joining is a wire that reports requests to join the group, and holds them while the test wants
// it.
type joining struct {
	wire
	hold  atomic.Bool
	asked chan struct{} // receives a value for each request
	over  chan struct{}
}

func newJoining(t testing.TB) *joining {
	j := &joining{asked: make(chan struct{}, 1000), over: make(chan struct{})}
	t.Cleanup(func() { close(j.over) })
	j.wire.asked = func(e *exchange) bool {
		if e.Key() == int16(kmsg.JoinGroup) {
			j.asked <- struct{}{}
			if j.hold.Load() {
				<-j.over
			}
		}
		return true
	}
	return j
}

// member opens a driver behind the wire, and waits until it has a partition.
func (j *joining) member(t testing.TB, b *fixture) *Driver {
	t.Helper()
	d, _ := b.open(t, func(c *Config) {
		c.Client = append(c.Client, j.through(), kgo.RebalanceTimeout(2*testTimeout))
	})
	for ctx := limited(t); len(d.allPartitions()) == 0; {
		if sleep(ctx, time.Millisecond); ctx.Err() != nil {
			t.Fatal("the member has no partition")
		}
	}
	return d
}

// A member that leaves during a rebalance, because another one has died, commits what is finished.
// It does not wait for the end of the dead one's session.
func TestCloseDuringARebalance(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		t.Parallel()
		b := make(t)
		for i := range 30 {
			b.Produce(t, broker.Publication{Channel: b.source, Key: fmt.Append(nil, i)})
		}
		ours, dead := newJoining(t), newJoining(t)
		d := ours.member(t, b)
		dead.member(t, b)
		got := take(t, d, 1)
		dead.hold.Store(true)
		for len(ours.asked) > 0 {
			<-ours.asked
		}
		b.open(t, nil) // another member joins, and the rebalance waits for the session of the dead one
		select {
		case <-ours.asked:
		case <-limited(t).Done():
			t.Fatal("the group does not gather")
		}
		receiving, stop := context.WithCancel(t.Context())
		received := background(func() { _, _ = d.Receive(receiving, broker.Want{Max: 1}) })
		all(t, d.Ack(t.Context(), got))
		stop()
		<-received
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := d.Close(ctx); err != nil {
			t.Error(err)
		}
		if offset, crashes := b.groupState(t, got[0].Partition); offset != got[0].Offset+1 || crashes != 0 {
			t.Errorf("%d is committed, with %d crashes", offset, crashes)
		}
	})
}

// Close also closes a member that the driver is just making.
func TestCloseWhileRejoining(t *testing.T) {
	b := fake(t)
	leaving, open := make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	w := &wire{asked: func(e *exchange) bool {
		if e.Key() == int16(kmsg.LeaveGroup) && once.CompareAndSwap(false, true) {
			close(leaving)
			<-open
		}
		return true
	}}
	b.fill(t, 1)
	d, _ := b.open(t, func(c *Config) { c.Client = append(c.Client, w.through()) })
	take(t, d, 1)
	d.throwOut()
	received := background(func() { _, _ = d.Receive(t.Context(), broker.Want{Max: 1, Wait: time.Second}) })
	<-leaving
	closing := background(func() { closed(t, d) })
	for !d.closes() {
		sleep(t.Context(), time.Millisecond)
	}
	close(open)
	<-received
	<-closing
	if !d.group.PollRecords(t.Context(), 1).IsClientClosed() {
		t.Error("a member is left")
	}
}

// background runs a function and returns a channel that is closed when it is over.
func background(run func()) <-chan struct{} {
	over := make(chan struct{})
	go func() { defer close(over); run() }()
	return over
}

func (d *Driver) closes() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closing
}
