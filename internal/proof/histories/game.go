package histories

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
)

// The queues of a history.
const (
	plain  = "plain"
	strict = "strict"
	after  = "after" // of messages that follow settlements, which stay there
)

// Bounds of a history. What cannot be known makes judging hard, so there is little
// of it.
const (
	maxCalls    = 300
	checks      = 80 // of the calls, at most: those that work off what is left and look
	maxMessages = 40
	maxDoubts   = 6
	maxEnds     = 2 // of processes
	maxLoans    = 3 // of a settlement
	followers   = 2 // of a settlement that has any
	leaseTime   = 10 * time.Second
)

// game is a history in the making.
type game struct {
	t      testing.TB
	seed   uint64
	clock  *Clock
	shared Shared
	record *record
	blocks bool // the dead of a strict stream keep the others waiting
	told   bool // see Harness.Told

	mu     sync.Mutex
	left   int // calls
	joined int
	ended  int
	doubts int
	kills  int   // of processes of their own
	newest int64 // number of an effect, or of what follows a settlement
	sent   map[nixie.ID]sending
	names  []nixie.ID
	loans  []Loan // all that were ever given
	dead   []nixie.ID
	errs   []error

	handles []*handle
}

// handle stands for one process after the other.
type handle struct {
	mu      sync.Mutex
	client  Client
	owner   string
	process bool
}

// now is the client that the handle stands for at the moment.
func (h *handle) now() (Client, string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.client, h.owner
}

// player is one client with a random source of its own.
type player struct {
	*game
	number int
	rng    *rand.Rand
	at     *handle
	mine   []Loan
}

// play makes the history of a seed and judges it.
func play(t testing.TB, h Harness, seed uint64) *verdict {
	rng := rand.New(rand.NewPCG(seed, 0))
	clock := NewClock()
	g := &game{
		t: t, seed: seed, clock: clock, shared: h.Open(t, clock), record: &record{clock: clock}, blocks: rng.IntN(2) == 0, told: h.Told,
		left: 40 + rng.IntN(maxCalls-40-checks), sent: map[nixie.ID]sending{},
	}
	g.open(rng)
	var wg sync.WaitGroup
	for i := range 2 + rng.IntN(7) {
		p := &player{game: g, number: i + 1, rng: rand.New(rand.NewPCG(seed, uint64(i+1))), at: g.handles[i%len(g.handles)]}
		wg.Go(func() {
			for g.more() {
				p.step()
			}
		})
	}
	wg.Wait()
	v := g.finish()
	for _, err := range g.errs {
		v.say("the history itself failed: %v", err)
	}
	if err := g.shared.Close(); err != nil {
		v.say("close the store: %v", err)
	}
	return v
}

// open joins the store several times, in part of the histories by processes of
// their own.
func (g *game) open(rng *rand.Rand) {
	spawns := 0
	if g.shared.Spawn != nil && rng.IntN(6) == 0 {
		spawns = 1 + rng.IntN(2)
	}
	for i := range 1 + rng.IntN(3) + spawns {
		h := &handle{process: i < spawns}
		g.replace(h)
		g.handles = append(g.handles, h)
	}
	if err := errors.Join(g.errs...); err != nil {
		g.t.Fatal(err)
	}
	head := nixie.DeadFrees
	if g.blocks {
		head = nixie.DeadBlocks
	}
	p := &player{game: g, at: g.handles[0]}
	p.do(Call{Kind: Configure, Queue: strict, Order: nixie.OrderStrict, Head: head})
}

// more takes one call of those that are left.
func (g *game) more() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left--
	return g.left >= 0
}

// replace puts another process under a handle, and returns the one
// before.
func (g *game) replace(h *handle) (before Client, owner string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.joined++
	name := fmt.Sprint("owner-", g.joined)
	join := g.shared.Join
	if h.process {
		join = g.shared.Spawn
	}
	client, err := join(name)
	if err != nil {
		g.errs = append(g.errs, err)
		return nil, ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	before, owner = h.client, h.owner
	h.client, h.owner = client, name
	return before, owner
}

// end ends a process while others may be calling it.
func (g *game) end(number int, c Client, owner string, kill bool) {
	e := g.record.begin(number, owner, Call{Kind: gone})
	end := c.Close
	if kill {
		end = c.Kill
	}
	if err := end(); err != nil {
		g.mu.Lock()
		g.errs = append(g.errs, fmt.Errorf("end of %s: %w", owner, err))
		g.mu.Unlock()
	}
	g.record.end(e, Answer{})
}

// do does a call and records it.
func (p *player) do(c Call) Answer {
	client, owner := p.at.now()
	e := p.record.begin(p.number, owner, c)
	runtime.Gosched() // so that calls of a fast store meet, too
	a := client.Do(c)
	runtime.Gosched()
	p.record.end(e, a)
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.unknown() {
		p.doubts++
	}
	p.loans = append(p.loans, a.Loans...)
	return a
}

// step does something at random.
func (p *player) step() {
	switch n := p.rng.IntN(100); {
	case n < 18:
		p.enqueue()
	case n < 42 || n < 70 && len(p.mine) == 0:
		p.claim()
	case n < 64:
		p.settle()
	case n < 70:
		p.extend()
	case n < 76:
		p.finishOne()
	case n < 79:
		p.about(Cancel)
	case n < 82:
		p.about(Hold)
	case n < 84:
		p.about(RetryNow)
	case n < 89:
		p.about(Redrive)
	case n < 90:
		p.about(Drop)
	case n < 95:
		p.about(Look)
	case n < 97 || n < 99 && !p.at.process:
		p.wait()
	default:
		p.leave()
	}
}

// patience bounds how long a caller stays. It is short in a few calls.
func (p *player) patience() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.doubts >= maxDoubts || p.rng.IntN(8) > 0 {
		return 0
	}
	return time.Duration(1 + p.rng.IntN(int(time.Millisecond)))
}

func (p *player) queue() string {
	if p.rng.IntN(3) == 0 {
		return strict
	}
	return plain
}

func (p *player) enqueue() {
	c := Call{Kind: Enqueue, Queue: p.queue(), Patience: p.patience()}
	p.mu.Lock()
	for range 1 + p.rng.IntN(3) {
		if len(p.names) == maxMessages {
			break
		}
		m := Sent{ID: nameOf(p.seed, len(p.names)+1)}
		if c.Queue == strict {
			m.Stream = fmt.Sprint("stream-", p.rng.IntN(2))
		} else if p.rng.IntN(3) == 0 {
			m.Key = fmt.Sprint("key-", len(c.Messages)+3*p.rng.IntN(2)) // no two of one call are the same
			m.Refuse = p.rng.IntN(3) == 0
		}
		if p.rng.IntN(6) == 0 {
			m.Delay = time.Duration(1+p.rng.IntN(4)) * time.Second
		}
		p.sent[m.ID] = sending{c.Queue, m.Key, m.Stream}
		p.names = append(p.names, m.ID)
		c.Messages = append(c.Messages, m)
	}
	p.mu.Unlock()
	if len(c.Messages) > 0 {
		p.do(c)
	}
}

func (p *player) claim() {
	a := p.do(Call{Kind: Claim, Queue: p.queue(), Max: 1 + p.rng.IntN(4), Lease: leaseTime, Patience: p.patience()})
	p.mine = append(p.mine, a.Loans...)
}
