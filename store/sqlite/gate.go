package sqlite

import "sync"

// gate counts the calls inside, and is shut once.
type gate struct {
	mu     sync.Mutex
	inside int
	shut   bool
	empty  chan struct{} // closed when the gate is shut and all calls have left
}

func newGate() *gate { return &gate{empty: make(chan struct{})} }

// enter reports whether the call may go in. A call that went in has to leave.
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

// close shuts the gate, waits until all calls have left, and reports whether this call shut it.
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
