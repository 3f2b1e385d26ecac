package broker

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// Source makes a [nixie.Source] of the channels of a broker. [New] makes one.
type Source struct {
	c        Config
	features Features

	mu          sync.Mutex
	serial      serialQueues
	slots       []slot        // of delivered items; the lease names the index
	freeSlots   []int         // indexes of slots without an item
	freeScratch []*scratch    // that no call uses
	freeChunks  []*chunk      // without an item in hand
	lastLease   int64         // number of the newest lease
	ready       fifo          // may be delivered
	suspects    fifo          // may be delivered, and vanished with a holder before
	delayed     delayQueue    // become ready later
	inHand      int           // items in all
	oneAtATime  bool          // the newest records vanished with a holder: receive one at a time
	receives    int           // calls of Receive
	lease       time.Duration // that the newest Receive wants
	asked       time.Time     // when the newest Receive began
	bytes       int64         // size of all items
	halted      bool          // deliver nothing more

	receiving chan struct{}   // full while a call of Receive runs
	lost      <-chan struct{} // closed when items may be lost; only Receive uses it
	interrupt func()          // ends the wait of Receive
}

// item is a record in hand. There are many, and most of them just succeed, so an item holds only
// what success needs.
type item struct {
	chunk    *chunk // that this item belongs to
	record   *Record
	delivery *nixie.Delivery // newest; the worker of an earlier one may still read that; nil before the first
	serial   *serialQueue
	retry    *retryState // nil before the first failure
	size     int64
	settling bool // a call is settling it
	suspect  bool // it vanished with a holder before
	judged   bool // a worker was told of the crashes
	refusals byte // times that a channel did not take its letter
}

// retryState holds the failures of an item.
type retryState struct {
	due     time.Time       // while it waits in hand
	history []nixie.Failure // oldest first
	dropped int             // failures that no longer fit into history, or that no header tells
}

// failures returns the failures of an item, oldest first.
func (i *item) failures() []nixie.Failure {
	if i.retry == nil {
		return nil
	}
	return i.retry.history
}

// dropped returns how many more failures the item had.
func (i *item) dropped() int {
	if i.retry == nil {
		return 0
	}
	return i.retry.dropped
}

// remember stores the failures of an item.
func (i *item) remember(history []nixie.Failure, dropped int) {
	if len(history)+dropped > 0 {
		i.retry = &retryState{history: history, dropped: dropped}
	}
}

// slot holds a delivered item and the number of its lease.
type slot struct {
	item   *item
	number int64
}

// New checks a config and makes a source of it. [Source.Check] checks the channels.
func New(c Config) (*Source, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Source{c: c, features: c.Driver.Features(), receiving: make(chan struct{}, 1), lost: c.Driver.Lost(), interrupt: func() {}}
	s.serial.order, s.serial.seed = c.Order, maphash.MakeSeed()
	s.oneAtATime = s.features.CountsAll // the first records may have vanished with a holder
	return s, nil
}

// Name returns the queue that letters have.
func (s *Source) Name() string { return s.c.Queue }

// LeasesLost implements [lease.LossNotifier].
func (s *Source) LeasesLost() <-chan struct{} { return s.c.Driver.Lost() }

// Stopping implements [lease.Stopper] where the driver does.
func (s *Source) Stopping(ctx context.Context, told bool) error {
	if driver, ok := s.c.Driver.(lease.Stopper); ok {
		return driver.Stopping(ctx, told)
	}
	return nil
}

var _ Counter = (*Source)(nil)

// Remaining implements [Counter]. It returns zeros if the driver cannot count.
func (s *Source) Remaining(ctx context.Context) (Remaining, error) {
	if c, ok := s.c.Driver.(Counter); ok {
		return c.Remaining(ctx)
	}
	return Remaining{}, nil
}

// Slow implements [lease.SlowSettler]: a store or the broker confirms letters and retries, which
// takes time.
func (s *Source) Slow(st *nixie.Settlement) bool {
	return buries(st.Verb) || len(st.Then) > 0 || s.leaves(st) && (s.c.Park != nil || s.features.delays())
}

// LastFailure implements [lease.Historian]: the failures of a record in hand are those that its
// headers tell, and those since.
func (s *Source) LastFailure(_ context.Context, d *nixie.Delivery) (*nixie.Failure, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, _, err := s.lookUp(d)
	if err != nil {
		return nil, err
	}
	return lease.LastFailure(i.failures()), nil
}

// deliver hands an item out under a new lease. The caller holds the mutex.
func (s *Source) deliver(i *item, now, expires time.Time, alloc *deliveryAllocator) *nixie.Delivery {
	if i.delivery == nil {
		i.fill(alloc.next(), &s.features, s.c.Queue, now)
	}
	at := len(s.slots)
	if n := len(s.freeSlots); n > 0 {
		at, s.freeSlots = s.freeSlots[n-1], s.freeSlots[:n-1]
	} else {
		s.slots = append(s.slots, slot{})
	}
	s.lastLease++
	d := i.delivery
	d.Lease = nixie.Lease{
		Number: i.record.Epoch<<epochShift | s.lastLease&(1<<epochShift-1), Owner: s.c.Name, ExpiresAt: expires,
		Handle: nixie.LeaseHandle{Pos: int64(at)},
	}
	s.slots[at] = slot{i, d.Lease.Number}
	d.Deliveries++
	d.Abandoned = d.Crashes > 0 && !i.judged
	d.AbandonedAlone = d.Abandoned && i.record.Alone
	if !d.Abandoned {
		d.Attempts++
	}
	i.judged, d.Tracking.OfBroker = true, true
	lease.Ready(d)
	return d
}

// epochShift leaves 40 bits of a lease number for the leases within one epoch.
const epochShift = 40

// lookUp returns the item of a lease and its slot. The caller holds the mutex.
func (s *Source) lookUp(d *nixie.Delivery) (*item, int, error) {
	at := d.Lease.Handle.Pos
	if at < 0 || at >= int64(len(s.slots)) || s.slots[at].item == nil || s.slots[at].number != d.Lease.Number ||
		s.slots[at].item.delivery.ID != d.ID {
		return nil, 0, nixie.Errorf(nixie.CodeLeaseLost, "message %s: its lease is not this one any more", d.ID)
	}
	return s.slots[at].item, int(at), nil
}

// freeSlot ends the lease of an item. The caller holds the mutex.
func (s *Source) freeSlot(at int) {
	s.slots[at] = slot{}
	s.freeSlots = append(s.freeSlots, at)
}

// forget drops an item that is done or lost, and lets the next one of its serial queue go. No code
// may use the item afterwards. The caller holds the mutex.
func (s *Source) forget(i *item) {
	s.inHand--
	s.bytes -= i.size
	s.letNext(i)
	s.release(i.chunk)
}

// letNext makes the next item of the same serial queue ready. The caller holds the mutex.
func (s *Source) letNext(i *item) {
	if next := s.serial.leave(i); next != nil {
		s.makeReady(next)
	}
}

// makeReady puts an item where Receive finds it. The caller holds the mutex.
func (s *Source) makeReady(i *item) {
	if i.suspect {
		s.suspects.push(i)
		return
	}
	s.ready.push(i)
}
