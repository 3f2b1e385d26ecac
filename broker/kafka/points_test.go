package kafka

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/policy"
)

// Points of the work at which a group changes.
const (
	fetched     = "fetched, and not handed out"
	handedOut   = "handed out"
	handling    = "the handler runs"
	letterSent  = "the letter is with the broker, and the answer is not here"
	letterThere = "the letter is confirmed, and the record is not acknowledged"
	retryThere  = "the retry is confirmed, and the record is not acknowledged"
	settled     = "acknowledged, and the commit is not with the broker"
	committing  = "the commit is with the broker, and the answer is not here"
	paused      = "the partition is paused"
)

// Changes of a group, as one member sees them.
const (
	joins     = "another joins"
	leaves    = "it leaves"
	killed    = "it is killed"
	forgotten = "its session is lost"
)

// change happens to a member at a point. Late means that the member goes on only after
// another one has its partition.
type change struct {
	point, event string
	late         bool
}

func (c change) String() string {
	if c.late {
		return c.event + ", and goes on late"
	}
	return c.event
}

// onTheWire reports whether the point holds a connection, and so also what the member says to the
// group.
func (c change) onTheWire() bool {
	return slices.Contains([]string{fetched, settled, committing}, c.point)
}

// gentle reports whether the member gives up its partitions in good order and in time.
func (c change) gentle() bool { return c.event == leaves || c.event == joins && !c.late }

// settles reports whether the point holds only a settlement. The member goes on, and may soon have
// a partition again whose keys wait for that settlement.
func (c change) settles() bool {
	return slices.Contains([]string{letterSent, letterThere, retryThere}, c.point)
}

// staysOut reports whether the member joins again only after it goes on. Otherwise records of a
// partition that it gets again would wait for what the point holds.
func (c change) staysOut() bool { return c.event == forgotten && c.late && !c.settles() }

// changesAt lists the changes that make sense at a point.
func changesAt(point string) (all []change) {
	for _, c := range []change{{point, joins, false}, {point, joins, true}, {point, leaves, false}, {point, killed, true},
		{point, forgotten, false}, {point, forgotten, true}} {
		if c.event == joins && c.late && c.onTheWire() {
			continue // the group waits for this member
		}
		all = append(all, c)
	}
	return all
}

var allPoints = [...]string{fetched, handedOut, handling, letterSent, letterThere, retryThere, settled, committing, paused}

// A group changes at each point of a member's work. No record is lost. Members commit only what is
// done, and only of their own partitions. No record is handled again after its commit, and none
// twice if the member leaves in good order.
func TestChangesAtEveryPoint(t *testing.T) {
	for _, point := range allPoints {
		t.Run(point, func(t *testing.T) {
			for _, c := range changesAt(point) {
				t.Run(c.String(), func(t *testing.T) {
					t.Parallel()
					changed(t, fake(t), c)
				})
			}
		})
	}
}

// The same on a real broker.
func TestChangesAtEveryPointOfARealBroker(t *testing.T) {
	t.Parallel()
	server.Need(t)
	for n, point := range allPoints {
		all := changesAt(point)
		for _, c := range []change{all[n%(len(all)-1)], {point, forgotten, true}} {
			t.Run(point+": "+c.String(), func(t *testing.T) { changed(t, actual(t), c) })
		}
	}
}

// gate holds a member at its point until the gate opens. A member that comes after the change
// passes: it has noticed the change and begins anew.
type gate struct {
	at                    string
	once                  sync.Once
	reached, struck, open chan struct{}
}

func newGate(at string) *gate {
	return &gate{at: at, reached: make(chan struct{}), struck: make(chan struct{}), open: make(chan struct{})}
}

func (g *gate) pass(point string) {
	if g.at != point {
		return
	}
	select {
	case <-g.struck:
	default:
		g.once.Do(func() { close(g.reached) })
		<-g.open
	}
}

// keepOut holds requests to join the group from the change until the gate opens.
func (g *gate) keepOut(e *exchange) {
	if e.Key() != int16(kmsg.JoinGroup) || len(e.answer) > 0 {
		return
	}
	select {
	case <-g.struck:
		<-g.open
	default:
	}
}

// look finds requests and answers that are points, and holds them.
func (g *gate) look(e *exchange) {
	if e.Key() == int16(kmsg.Produce) && len(e.answer) > 0 {
		g.pass(letterSent)
	}
	asked, answer := e.commit()
	if asked == nil {
		return
	}
	begins, moves := false, false
	for _, topic := range asked.Topics {
		for _, part := range topic.Partitions {
			begins = begins || part.Offset == 0 && readSuspects(part.Metadata).crashes == 1
			moves = moves || part.Offset > 0
		}
	}
	switch {
	case begins && answer == nil:
		g.pass(fetched)
	case moves && answer == nil:
		g.pass(settled)
	case moves:
		g.pass(committing)
	}
}

// recordsPerRound is so large that each partition has several records of each sort.
const recordsPerRound = 18

func (p *groupTrace) fill(t testing.TB, kind string, round int) {
	t.Helper()
	var list []*kgo.Record
	for i := range recordsPerRound {
		word := fine
		if i%2 == 0 {
			word = kind
		}
		list = append(list, &kgo.Record{Topic: p.source, Key: fmt.Append(nil, round, "-", i), Value: fmt.Append(nil, word, " ", i)})
	}
	if err := p.client.ProduceSync(limited(t), list...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// member starts a member with a trace.
func (p *groupTrace) member(t testing.TB, name string, g *gate, c change) *testMember {
	t.Helper()
	w := &wire{
		asked: func(e *exchange) bool {
			p.watch(e)
			if g.look(e); c.staysOut() {
				g.keepOut(e)
			}
			return true
		},
		answered: func(e *exchange) bool { p.watch(e); g.look(e); return true },
	}
	p.around = func(d *Driver) broker.Driver { return &tracedDriver{d, p, g, name} }
	return p.start(t, func(_ context.Context, d *nixie.Delivery) error {
		g.pass(handling)
		g.pass(paused)
		switch word, _, _ := strings.Cut(string(d.Body), " "); {
		case word == malformed:
			return errBad
		case word == flaky && d.Attempts == 1:
			return errLater
		}
		p.note(d)
		return nil
	}, func(k *Config, s *broker.Config, r *policy.Config) {
		k.Client = append(k.Client, w.through())
		if c.gentle() {
			s.Order = broker.ProcessByPartition // otherwise later records may be done before an earlier one has begun
		}
		if c.point == paused {
			k.MaxAhead = 2
		}
		if k.Grace = testTimeout / 4; c.late {
			k.Grace = time.Millisecond
		}
		if len(p.stages) > 0 {
			r.Backoff = policy.Backoff{Formula: policy.Fixed, Base: time.Millisecond}
		}
	})
}

func changed(t *testing.T, b *fixture, c change) {
	kind := fine
	switch c.point {
	case letterSent, letterThere:
		kind = malformed
	case retryThere:
		kind = flaky
		b.addStage(t, 10*time.Millisecond)
	}
	b.drain = testTimeout / 4
	p := newGroupTrace(t, b)
	p.fill(t, kind, 1)
	g, free := newGate(c.point), newGate("")
	first := p.member(t, "first", g, c)
	p.waitForPoint(t, c, first, g)
	var second *testMember
	finish := func() { first.leave(t) }
	switch c.event {
	case joins:
		second = p.member(t, "second", free, c)
		p.until(t, "the group knows of it", func() bool { return p.unsettled(t) })
		close(g.struck)
		if c.late {
			p.until(t, "the other has a partition", second.has)
		}
		close(g.open)
	case leaves:
		close(g.struck)
		first.stop()
		gone := make(chan struct{})
		go func() { defer close(gone); first.leave(t) }()
		close(g.open)
		<-gone
		second, finish = p.member(t, "second", free, c), func() {}
	case killed:
		b.ends[first.driver] = first.end
		b.Crash(t, first.driver)
		close(g.struck)
		second = p.member(t, "second", free, c)
		p.waitForCommits(t, recordsPerRound)
		close(g.open)
		first.stop()
		first.worker.Abort()
		<-first.ran //nolint:errcheck // what it says does not matter
		finish = func() {}
	case forgotten:
		close(g.struck)
		b.kick(t, first.driver)
		second = p.member(t, "second", free, c)
		if c.staysOut() {
			p.waitForCommits(t, recordsPerRound)
		} else if c.late {
			p.until(t, "the other has a partition", second.has)
		}
		close(g.open)
	}
	p.waitForCommits(t, recordsPerRound)
	p.fill(t, fine, 2)
	p.waitForCommits(t, 2*recordsPerRound)
	finish()
	second.leave(t)
	p.check(t)
	if n := p.repeated(); n > 0 && c.gentle() {
		t.Errorf("%d records were handled twice", n)
	}
}

// waitForPoint waits until a member is at the point.
func (p *groupTrace) waitForPoint(t testing.TB, c change, h *testMember, g *gate) {
	t.Helper()
	select {
	case <-g.reached:
	case <-time.After(testTimeout):
		t.Fatal("no member came there")
	}
	if c.point == paused {
		p.until(t, "paused", func() bool {
			h.driver.mu.Lock()
			defer h.driver.mu.Unlock()
			for _, part := range h.driver.partitions {
				if part.paused {
					return true
				}
			}
			return false
		})
	}
}

// until waits for a condition.
func (p *groupTrace) until(t testing.TB, what string, is func() bool) {
	t.Helper()
	ctx := limited(t)
	for !is() {
		if sleep(ctx, time.Millisecond); ctx.Err() != nil {
			t.Fatalf("%s: not after %s", what, testTimeout)
		}
	}
}

// waitForCommits waits until n records are acknowledged and committed.
func (p *groupTrace) waitForCommits(t testing.TB, n int) {
	t.Helper()
	p.until(t, fmt.Sprint(n, " are over"), func() bool {
		p.mu.Lock()
		letters := len(p.letters)
		p.mu.Unlock()
		return p.count()+letters == n && p.committedRecords() == int64(n)
	})
}

// has reports whether a member has a partition.
func (h *testMember) has() bool {
	h.driver.mu.Lock()
	defer h.driver.mu.Unlock()
	return len(h.driver.partitions) > 0
}

// unsettled reports whether the group is about to change, or has two members.
func (p *groupTrace) unsettled(t testing.TB) bool {
	groups, err := kadm.NewClient(p.client).DescribeGroups(limited(t), p.source)
	if err != nil {
		t.Fatal(err)
	}
	return groups[p.source].State != "Stable" || len(groups[p.source].Members) > 1
}
