package contest

import (
	"context"
	"slices"
)

// Library is a queue with its store. Its methods are called from many goroutines;
// Close is the last call.
type Library interface {
	// Enqueue takes in one task and returns when it is accepted.
	Enqueue(ctx context.Context, t Task) error
	// EnqueueBatch takes in many as one.
	EnqueueBatch(ctx context.Context, list []Task) error
	// Batch is how many that should be.
	Batch() int
	// Start begins to hand out messages. Stop returns when the last handler has
	// returned and nothing is in hand.
	Start(ctx context.Context, handle Handler) (stop func() error, err error)
	// Left counts messages that are neither done nor dead.
	Left(ctx context.Context) (int, error)
	// Dead counts dead letters, or whatever has their place.
	Dead(ctx context.Context) (int, error)
	// Each yields every task that waits.
	Each(ctx context.Context, yield func(Task) error) error
	Close() error
}

// Handler is what a library calls for each delivery. Its error is a failure of
// the task.
type Handler interface {
	Handle(t Task) error
}

// Prover is a library that can show how it did it.
type Prover interface {
	// Prove checks, after everything was worked off, that each of n tasks took
	// the whole way.
	Prove(ctx context.Context, s Scenario, n int) error
}

// Bearer is a library that plays the scenarios with a burden. What lies beside is
// neither left nor dead, nor proved.
type Bearer interface {
	// Burden puts there what waits or is dead beside what is measured.
	Burden(ctx context.Context) error
	// Foreign enqueues tasks in a transaction of others, which is open until commit.
	Foreign(ctx context.Context, list []Task) (commit func() error, err error)
}

// Setup is what a library is opened for.
type Setup struct {
	Scenario    Scenario
	Folder      string // of its file, if it has one
	Synchronous string // of peers with a file: NORMAL or FULL
	URL         string // of its database, if it has a server
	Postmaster  int    // process of that server; 0 is not known
	Burden      int    // size of what is beside what is measured
}

// Entrant is a library that takes part.
type Entrant struct {
	Name     string
	Kind     Kind
	Module   string     // path of its module, for its version
	Settings string     // for the reader
	Streams  bool       // keeps the streams of Streams in order; others work them off in any
	Only     []Scenario // it takes part in; nil is all
	Open     func(ctx context.Context, s Setup) (Library, error)
}

// Kind says what an entrant is there for.
type Kind string

// The kinds.
const (
	Ours  Kind = "ours"
	Peer  Kind = "peer"
	Limit Kind = "limit" // what a store could do at best
)

// Plays reports whether an entrant takes part in a scenario.
func (e *Entrant) Plays(s Scenario) bool {
	return (e.Only == nil || slices.Contains(e.Only, s)) && (e.Kind == Ours || !s.Burdened())
}
