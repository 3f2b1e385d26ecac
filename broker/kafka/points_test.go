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

// change is what happens to a member at a point, and whether what it was about to do
// there goes on only when somebody else has done it.
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

// onTheWire reports whether a connection is held at the point, and so what the member
// says to the group as well.
func (c change) onTheWire() bool {
	return slices.Contains([]string{fetched, settled, committing}, c.point)
}

// gentle reports whether a member gives up what it has in good order, and in time.
func (c change) gentle() bool { return c.event == leaves || c.event == joins && !c.late }

// settles reports whether only a settlement is held at the point: the member goes on, and
// may soon have a partition again whose keys wait for that.
func (c change) settles() bool {
	return slices.Contains([]string{letterSent, letterThere, retryThere}, c.point)
}

// staysOut reports whether a member that is out comes back only when it goes on: the
// records of a partition that it had again would wait for what is held.
func (c change) staysOut() bool { return c.event == forgotten && c.late && !c.settles() }

// changesAt lists all changes at a point that make sense.
func changesAt(point string) (all []change) {
	for _, c := range []change{{point, joins, false}, {point, joins, true}, {point, leaves, false}, {point, killed, true}, {point, forgotten, false}, {point, forgotten, true}} {
		if c.event == joins && c.late && c.onTheWire() {
			continue // the group waits for it until it is lost
		}
		all = append(all, c)
	}
	return all
}

var allPoints = [...]string{fetched, handedOut, handling, letterSent, letterThere, retryThere, settled, committing, paused}

// A group changes at every point of the work of a member: nothing is lost, nothing is
// committed that is not done, nor by who does not have it, and what is done twice had not
// been committed. What ends in good order does nothing twice.
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

// gate holds whoever comes to its point until it is opened. Who comes after the change
// passes: a member that has noticed it begins anew.
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

// keepOut holds whoever asks to join the group between the change and the opening.
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

// look holds requests and answers that are a point.
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

// enough records of each kind are on the source that each partition has several.
const enough = 18

func (p *play) fill(t testing.TB, kind string, round int) {
	t.Helper()
	var list []*kgo.Record
	for i := range enough {
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

// member is a hand that is watched.
func (p *play) member(t testing.TB, name string, g *gate, c change) *hand {
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
	p.around = func(d *Driver) broker.Driver { return &observed{d, p, g, name} }
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
			s.Order = broker.ProcessByPartition // otherwise what is behind may be done, and what is before not begun
		}
		if c.point == paused {
			k.MaxAhead = 2
		}
		if k.Grace = patience / 4; c.late {
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
		b.soon(t, 10*time.Millisecond)
	}
	b.drain = patience / 4
	p := newPlay(t, b)
	p.fill(t, kind, 1)
	g, free := newGate(c.point), newGate("")
	first := p.member(t, "first", g, c)
	p.come(t, c, first, g)
	var second *hand
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
		p.over(t, enough)
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
			p.over(t, enough)
		} else if c.late {
			p.until(t, "the other has a partition", second.has)
		}
		close(g.open)
	}
	p.over(t, enough)
	p.fill(t, fine, 2)
	p.over(t, 2*enough)
	finish()
	second.leave(t)
	p.check(t)
	if n := p.again(); n > 0 && c.gentle() {
		t.Errorf("%d records were handled twice", n)
	}
}

// come waits until a member is at the point.
func (p *play) come(t testing.TB, c change, h *hand, g *gate) {
	t.Helper()
	select {
	case <-g.reached:
	case <-time.After(patience):
		t.Fatal("nobody came there")
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

// until waits for something.
func (p *play) until(t testing.TB, what string, is func() bool) {
	t.Helper()
	ctx := limited(t)
	for !is() {
		if pass(ctx, time.Millisecond); ctx.Err() != nil {
			t.Fatalf("%s: not after %s", what, patience)
		}
	}
}

// over waits until so many records are done with and committed.
func (p *play) over(t testing.TB, n int) {
	t.Helper()
	p.until(t, fmt.Sprint(n, " are over"), func() bool {
		p.mu.Lock()
		letters := len(p.letters)
		p.mu.Unlock()
		return p.count()+letters == n && p.committed() == int64(n)
	})
}

// has reports whether a member has a partition.
func (h *hand) has() bool {
	h.driver.mu.Lock()
	defer h.driver.mu.Unlock()
	return len(h.driver.partitions) > 0
}

// unsettled reports whether the group is about to change, or has two members.
func (p *play) unsettled(t testing.TB) bool {
	groups, err := kadm.NewClient(p.client).DescribeGroups(limited(t), p.source)
	if err != nil {
		t.Fatal(err)
	}
	return groups[p.source].State != "Stable" || len(groups[p.source].Members) > 1
}
