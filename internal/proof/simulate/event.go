package simulate

import (
	"fmt"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
)

// Act is what happens in an event.
type Act string

// The acts. What a worker does is done by its process, like everything else.
const (
	Wait    Act = "wait"    // time goes on
	Enqueue Act = "enqueue" // New are taken in
	Repeat  Act = "repeat"  // the oldest enqueue whose outcome is unknown is done again
	Arrive  Act = "arrive"  // calls that hang arrive at the store
	Receive Act = "receive" // a worker asks for up to N of Queue, and begins what it can
	Finish  Act = "finish"  // a handler returns with How
	Step    Act = "step"    // a handler has done a step
	Release Act = "release" // a worker gives back what it has not begun
	Extend  Act = "extend"  // a worker renews its leases, with N only of what has begun
	Stall   Act = "stall"   // a process stands still: nothing is asked of it until it wakes
	Wake    Act = "wake"
	Kill    Act = "kill"  // a process dies with what it holds
	Leave   Act = "leave" // a process ends properly
	Start   Act = "start" // and is there again
	Skew    Act = "skew"  // the process's clock is wrong by For
	Plan    Act = "plan"  // an operator begins the operation Op: How to the letters of On, or of all of Queue
	Run     Act = "run"   // an operator lets an operation run for N groups and For at most
	Amend   Act = "amend" // an operator changes the messages On: How
	Pause   Act = "pause" // of Queue
	Resume  Act = "resume"
	Unblock Act = "unblock" // of Stream in Queue
	Pass    Act = "pass"    // likewise: its followers may pass
	Prune   Act = "prune"
	Purge   Act = "purge" // what is queued in Queue is canceled
)

// Event is one thing that happens. Only the fields that its act needs are set.
type Event struct {
	Do     Act
	By     string // process
	Queue  string
	Stream string
	On     []string // messages
	How    string
	N      int
	For    time.Duration
	Op     int
	Rate   int  // of a run, letters per second; 0 is no limit
	Force  bool // of a plan
	New    []Spec
	Fault  Fault
}

// Spec is a message to be enqueued.
type Spec struct {
	Name, Queue, Stream, Key, Type string
	Body                           string
	Priority                       int
	Delay, Expires                 time.Duration
	Conflict                       nixie.Conflict
}

// Fault is what goes wrong with one call of an event.
type Fault struct {
	Kind FaultKind
	Call int           // which call to the store of the event, from 0
	For  time.Duration // of a slow one
}

// FaultKind is a way in which a call goes wrong.
type FaultKind string

// The kinds of faults.
const (
	Fails FaultKind = "fails" // before anything happened
	Lost  FaultKind = "lost"  // it happened, and nobody is told
	Hangs FaultKind = "hangs" // nobody is told, and it happens later, in the order of the process's calls
	Slow  FaultKind = "slow"  // it takes its time to arrive
	Twice FaultKind = "twice" // all is well, and later it happens again, as if somebody had repeated it
)

// String is the event on one line.
func (e Event) String() string {
	b := &strings.Builder{}
	word := func(format string, args ...any) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(b, format, args...)
	}
	if e.By != "" {
		word("%s", e.By)
	}
	word("%s", e.Do)
	if e.Op > 0 {
		word("op%d", e.Op)
	}
	if e.How != "" {
		word("%s", e.How)
	}
	if e.N > 0 {
		word("%d", e.N)
	}
	if e.Queue != "" {
		word("of %s", e.Queue)
	}
	if e.Stream != "" {
		word("stream %s", e.Stream)
	}
	if len(e.On) > 0 {
		word("%s", strings.Join(e.On, ","))
	}
	if e.For != 0 {
		word("%s", e.For)
	}
	if e.Rate > 0 {
		word("at %d/s", e.Rate)
	}
	if e.Force {
		word("by force")
	}
	for _, m := range e.New {
		word("%s", m)
	}
	if e.Fault.Kind != "" {
		word("(call %d %s", e.Fault.Call, e.Fault.Kind)
		if e.Fault.For > 0 {
			word("%s", e.Fault.For)
		}
		b.WriteByte(')')
	}
	return b.String()
}

// String is the message in a few words.
func (m Spec) String() string {
	text := m.Name + "→" + m.Queue
	for _, part := range [...]struct {
		name, value string
		set         bool
	}{
		{"stream", m.Stream, m.Stream != ""},
		{"key", m.Key, m.Key != ""},
		{"type", m.Type, m.Type != ""},
		{"body", m.Body, m.Body != m.Name},
		{"priority", fmt.Sprint(m.Priority), m.Priority != 0},
		{"delay", m.Delay.String(), m.Delay != 0},
		{"expires", m.Expires.String(), m.Expires != 0},
		{"conflict", fmt.Sprint(m.Conflict), m.Conflict != 0},
	} {
		if part.set {
			text += " " + part.name + "=" + part.value
		}
	}
	return "[" + text + "]"
}
