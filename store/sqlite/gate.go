package sqlite

import "sync"

// gate counts the calls inside and is shut once.
type gate struct {
	mu     sync.Mutex
	inside int
	shut   bool
	empty  chan struct{} // closed when it is shut and nobody is inside
}

func newGate() *gate { return &gate{empty: make(chan struct{})} }

// enter reports whether the call may go in; it has to leave then.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return false
	}
	g.inside++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.shut && g.inside == 0 {
		close(g.empty)
	}
}

// close shuts the gate, waits until nobody is inside, and reports whether this
// was the call that shut it.
func (g *gate) close() bool {
	g.mu.Lock()
	first := !g.shut
	g.shut = true
	if first && g.inside == 0 {
		close(g.empty)
	}
	g.mu.Unlock()
	<-g.empty
	return first
}
