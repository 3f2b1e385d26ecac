package loop

import (
	"context"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
)

// Beat tells the [Group] of ctx that its caller is well: a handler, or a loop of your own. A
// handler that may take longer than Longest of the group calls it after each of its steps. Without
// a group it does nothing.
func Beat(ctx context.Context) {
	if s, ok := ctx.Value(signKey{}).(*sign); ok {
		s.beat()
	}
}

type signKey struct{}

// sign has the last beat of a loop, or of a handler at work on a message.
type sign struct {
	of      *pulse
	message string // its ID; "" is the loop
	last    time.Time
}

func (s *sign) beat() {
	now := s.of.clock()
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.last = now
}

// pulse holds the beats of one loop. Only the loop and its handlers beat.
type pulse struct {
	name  string
	clock func() time.Time

	mu       sync.Mutex
	own      sign
	handlers map[*nixie.Delivery]*sign // that run
	state    loopState
}

// loopState of a loop.
type loopState string

// The states.
const (
	notBegun loopState = "not begun"
	running  loopState = "running"
	stopping loopState = "stopping" // it receives nothing any more, and need not beat
	ended    loopState = "ended"
)

func newPulse(name string, clock func() time.Time) *pulse {
	p := &pulse{name: name, clock: clock, handlers: map[*nixie.Delivery]*sign{}, state: notBegun}
	p.own.of = p
	return p
}

func (p *pulse) is(state loopState) {
	p.own.beat()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != ended {
		p.state = state
	}
}

// around makes a handler beat at its beginning and at its end, and gives it what [Beat] needs.
func (p *pulse) around(h nixie.Handler) nixie.Handler {
	return nixie.HandlerFunc(func(ctx context.Context, d *nixie.Delivery) error {
		s := &sign{of: p, message: IDOf(d).String(), last: p.clock()}
		p.mu.Lock()
		p.handlers[d] = s
		p.mu.Unlock()
		defer func() {
			p.own.beat()
			p.mu.Lock()
			delete(p.handlers, d)
			p.mu.Unlock()
		}()
		return h.Handle(context.WithValue(ctx, signKey{}, s), d)
	})
}

// silence returns the time since the oldest beat that counts, and of which message it is. While
// handlers run each of them has to beat: a worker receives more while one is stuck.
func (p *pulse) silence(now time.Time) (longest time.Duration, message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.handlers {
		if d := now.Sub(s.last); d >= longest {
			longest, message = d, s.message
		}
	}
	if len(p.handlers) == 0 && p.state == running {
		longest = now.Sub(p.own.last)
	}
	return longest, message
}

// alive reports whether the handler of a delivery has beaten in the last while.
func (p *pulse) alive(d *nixie.Delivery, while time.Duration) bool {
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.handlers[d]
	return s == nil || now.Sub(s.last) <= while
}

// now returns the state of the loop.
func (p *pulse) now() loopState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}
