package simulate

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"strconv"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/storetest"
	"github.com/nixie-go/nixie/worker"
)

// world is a run under way.
type world struct {
	ctx       context.Context
	setup     Setup
	policy    *policy.Policy
	clock     *storetest.Clock
	shared    storetest.Shared
	eye       store.Store // reads, and never claims
	book      *ledger
	trace     hash.Hash
	processes []*process
	plans     map[int]*plan
	pace      pace
	steps     int
}

// process is one of the processes that share the store.
type process struct {
	WorkerSetup
	life     int
	up       bool
	stalled  bool
	raw      store.Store
	line     *line
	desks    map[string]*worker.Desk // by queue
	office   *office.Office
	hands    []*run
	unsure   [][]nixie.Message          // enqueued, and nobody knows whether
	breakers map[string]*policy.Breaker // by type
}

// run is a delivery in hand.
type run struct {
	d       *nixie.Delivery
	until   time.Time // when the lease ends at the earliest, by the store's clock
	begun   time.Time // by the process's clock; zero before that
	ticket  int       // of the breaker
	lost    bool      // the worker was told so
	decided bool      // the handler has returned
	err     error     // what it returned
}

// plan is an operation that operators know of.
type plan struct {
	id   nixie.ID
	work office.OperationRequest
}

// pace is how fast letters go in the run of an operation.
type pace struct {
	rate  int
	since time.Time
	moved int
}

func newWorld(ctx context.Context, setup Setup, shared storetest.Shared, clock *storetest.Clock) (*world, error) {
	p, err := policy.New(setup.Policy)
	if err != nil {
		return nil, err
	}
	w := &world{ctx: ctx, setup: setup, policy: p, clock: clock, shared: shared, trace: sha256.New(), plans: map[int]*plan{}}
	w.book = newLedger(clock.Now)
	w.eye = shared.Join("eye")
	for _, q := range setup.Queues {
		if err := store.Configure(ctx, w.eye, q.Name, q.Settings, officeName, "setup"); err != nil {
			return nil, err
		}
		w.book.set(q.Name, q.Settings)
	}
	for _, s := range append([]WorkerSetup{{Name: officeName}}, setup.Workers...) {
		pr := &process{WorkerSetup: s}
		w.processes = append(w.processes, pr)
		if err := w.start(pr); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *world) process(named string) *process {
	for _, p := range w.processes {
		if p.Name == named {
			return p
		}
	}
	return nil
}

// start begins a life of a process.
func (w *world) start(p *process) error {
	p.life++
	p.up, p.stalled = true, false
	p.raw = w.shared.Join(p.owner())
	p.line = &line{wait: w.clock.Advance, seen: w.book.seen, Store: &witness{Store: p.raw, owner: p.owner(), book: w.book, trace: w.trace, moved: w.moved}}
	p.desks, p.breakers = map[string]*worker.Desk{}, map[string]*policy.Breaker{}
	now := func() time.Time { return w.clock.Now().Add(p.Skew) }
	var err error
	if p.office, err = office.New(office.Config{Store: p.line, Actor: p.Name, Clock: now}); err != nil {
		return err
	}
	for _, queue := range w.setup.names() {
		p.desks[queue], err = worker.NewDesk(worker.Config{
			Source: store.NewSource(p.line, queue), Policy: w.policy, Clock: now, Lease: p.Lease, Name: p.owner(), Node: "node",
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *process) owner() string { return p.Name + "." + strconv.Itoa(p.life) }

// end takes a process away with all that it knows.
func (w *world) end(p *process) {
	w.book.gone[p.owner()] = true
	p.up, p.hands, p.unsure = false, nil, nil
}

// step lets an event happen. What makes no sense does nothing but that a moment
// goes by.
func (w *world) step(e Event) {
	w.steps++
	w.clock.Advance(time.Millisecond)
	fmt.Fprintln(w.trace, e)
	if e.Do == Wait {
		w.clock.Advance(e.For)
		return
	}
	p := w.process(e.By)
	if p == nil || p.up == (e.Do == Start) || p.stalled && e.Do != Wake && e.Do != Kill {
		return
	}
	if p.up {
		p.line.expect(e.Fault)
	}
	w.book.seen[string(e.Do)]++
	switch e.Do {
	case Start:
		w.must(w.start(p))
	case Kill:
		w.shared.Crash(p.raw)
		w.end(p)
	case Leave:
		p.line.arrive()
		w.must(p.raw.Close())
		w.end(p)
	case Stall, Wake:
		p.stalled = e.Do == Stall
	case Skew:
		p.Skew = e.For
	case Arrive:
		p.line.arrive()
		p.line.again()
	case Enqueue:
		w.enqueue(p, w.messages(e.New))
	case Repeat:
		w.repeat(p)
	case Receive, Finish, Step, Release, Extend:
		w.work(p, e)
	default:
		w.operate(p, e)
	}
}

// must notes an error that nothing in the simulation explains.
func (w *world) must(err error) { w.book.want(err == nil, Answers, "%v", err) }

func (w *world) messages(specs []Spec) []nixie.Message {
	messages := make([]nixie.Message, len(specs))
	for i, s := range specs {
		m := nixie.Message{
			Queue: s.Queue, Stream: s.Stream, DedupeKey: s.Key, Type: s.Type, Key: s.Name, Body: []byte(s.Body),
			Priority: s.Priority, Delay: s.Delay, OnConflict: s.Conflict,
		}
		if s.Expires > 0 {
			m.ExpiresAt = w.clock.Now().Add(s.Expires)
		}
		if w.setup.OwnIDs {
			m.ID = w.id(s.Name)
		}
		messages[i] = m
	}
	return messages
}

// id is that of a message by its name, the same in each run.
func (w *world) id(named string) nixie.ID {
	var id nixie.ID
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(named), w.setup.Seed))
	copy(id[:], sum[:])
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return id
}

// enqueue takes messages in. Whoever cannot know whether they were, and could
// recognise them, does it again later.
func (w *world) enqueue(p *process, messages []nixie.Message) {
	_, err := p.line.Enqueue(w.ctx, messages...)
	if nixie.CodeOf(err) == nixie.CodeOutcomeUnknown && w.setup.OwnIDs {
		p.unsure = append(p.unsure, messages)
	}
}

func (w *world) repeat(p *process) {
	if len(p.unsure) == 0 {
		return
	}
	messages := p.unsure[0]
	p.unsure = p.unsure[1:]
	w.enqueue(p, messages)
}
