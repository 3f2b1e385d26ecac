package broker

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
)

// Source is channels of a broker as a [nixie.Source]. Make one with [New].
type Source struct {
	c        Config
	features Features

	mu      sync.Mutex
	lanes   lanes
	places  []place // of what is handed out, by [nixie.Receipted]
	unused  []int   // indexes of places
	desks   []*desk // that no call uses
	slabs   []*slab // of which nothing is in hand
	number  int64   // of the newest lease
	ready   fifo    // may be handed out
	suspect fifo    // those of them that vanished with a holder before
	waiting waiting // due later
	inHand  int     // not done with
	careful bool    // what came last had vanished with a holder: one at a time
	bytes   int64   // of those
	halted  bool    // nothing more is handed out

	turn      chan struct{}   // taken by the one who receives
	lost      <-chan struct{} // closed when items may be lost; of the one who receives
	interrupt func()          // ends the waiting of Receive
}

// item is a record that is not done with. There are many, most of which just succeed:
// what they need for that is all they have.
type item struct {
	slab     *slab // that it is part of
	record   *Record
	delivery *nixie.Delivery // of this turn, as who had the last one may still look at that; nil before the first
	lane     *lane
	trouble  *trouble // nil: there was none
	size     int64
	settling bool // by a call that is under way
	suspect  bool // it vanished with a holder before
	judged   bool // that its holders vanished
}

// trouble is what went wrong with an item.
type trouble struct {
	due     time.Time       // while it waits for its next turn
	history []nixie.Failure // oldest first
	dropped int             // failures that are not in history any more
}

// failures are those of an item, oldest first.
func (i *item) failures() []nixie.Failure {
	if i.trouble == nil {
		return nil
	}
	return i.trouble.history
}

// remember notes what went wrong.
func (i *item) remember(history []nixie.Failure, dropped int) {
	if len(history) > 0 {
		i.trouble = &trouble{history: history, dropped: dropped}
	}
}

// place is where an item that is handed out is found by its lease.
type place struct {
	item   *item
	number int64
}

// New checks a config and makes a source of it. Whether the channels are fit for
// it is for [Source.Check] to say.
func New(c Config) (*Source, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Source{c: c, features: c.Driver.Features(), turn: make(chan struct{}, 1), lost: c.Driver.Lost(), interrupt: func() {}}
	s.lanes.order, s.lanes.seed = c.Order, maphash.MakeSeed()
	return s, nil
}

// Name is the name of the queue that letters have.
func (s *Source) Name() string { return s.c.Queue }

// LeasesLost implements [nixie.Alarm].
func (s *Source) LeasesLost() <-chan struct{} { return s.c.Driver.Lost() }

var _ Counter = (*Source)(nil)

// Remaining implements [Counter] where the driver does; otherwise nothing remains.
func (s *Source) Remaining(ctx context.Context) (Remaining, error) {
	if c, ok := s.c.Driver.(Counter); ok {
		return c.Remaining(ctx)
	}
	return Remaining{}, nil
}

// Slow implements [nixie.Slow]: letters and retries are confirmed by somebody else.
func (s *Source) Slow(st *nixie.Settlement) bool {
	return buries(st.Verb) || st.Verb == nixie.Retry && (s.c.Park != nil || len(s.features.Stages) > 0)
}

// lend hands an item out under a new lease. The source's mutex is held.
func (s *Source) lend(i *item, now, expires time.Time, room *loans) *nixie.Delivery {
	if i.delivery == nil {
		i.fill(room.next(), &s.features, s.c.Queue, now)
	}
	at := len(s.places)
	if n := len(s.unused); n > 0 {
		at, s.unused = s.unused[n-1], s.unused[:n-1]
	} else {
		s.places = append(s.places, place{})
	}
	s.number++
	d := i.delivery
	d.Lease = nixie.Lease{
		Number: i.record.Epoch<<epochShift | s.number&(1<<epochShift-1), Owner: s.c.Name, ExpiresAt: expires,
		Receipt: nixie.Receipted{Place: int64(at)},
	}
	s.places[at] = place{i, d.Lease.Number}
	d.Deliveries++
	d.Abandoned = d.Crashes > 0 && !i.judged
	d.AbandonedAlone = d.Abandoned && i.record.Alone
	if !d.Abandoned {
		d.Attempts++
	}
	i.judged = true
	d.Loan()
	return d
}

// epochShift makes room in a lease's number for what grows within one epoch.
const epochShift = 40

// held finds the item of a lease. The source's mutex is held.
func (s *Source) held(d *nixie.Delivery) (*item, int, error) {
	at := d.Lease.Receipt.Place
	if at < 0 || at >= int64(len(s.places)) || s.places[at].item == nil || s.places[at].number != d.Lease.Number || s.places[at].item.delivery.ID != d.ID {
		return nil, 0, nixie.Errorf(nixie.CodeLeaseLost, "message %s: its lease is not this one any more", d.ID)
	}
	return s.places[at].item, int(at), nil
}

// takeBack ends the lease of an item. The source's mutex is held.
func (s *Source) takeBack(at int) {
	s.places[at] = place{}
	s.unused = append(s.unused, at)
}

// forget drops an item that is done with, or lost, and lets go what waited for it.
// Nobody may look at it afterwards. The source's mutex is held.
func (s *Source) forget(i *item) {
	s.inHand--
	s.bytes -= i.size
	s.letGo(i)
	s.leave(i.slab)
}

// letGo lets the next one of a lane go. The source's mutex is held.
func (s *Source) letGo(i *item) {
	if next := s.lanes.leave(i); next != nil {
		s.offer(next)
	}
}

// offer makes an item ready. The source's mutex is held.
func (s *Source) offer(i *item) {
	if i.suspect {
		s.suspect.push(i)
		return
	}
	s.ready.push(i)
}
