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
	// EnqueueBatch takes in many tasks in one call.
	EnqueueBatch(ctx context.Context, list []Task) error
	// Batch returns the best number of tasks for EnqueueBatch.
	Batch() int
	// Start begins to deliver messages. Stop returns when the last handler has returned and no
	// message is in hand.
	Start(ctx context.Context, handle Handler) (stop func() error, err error)
	// Left counts messages that are neither done nor dead.
	Left(ctx context.Context) (int, error)
	// Dead counts dead letters, or the library's substitute for them.
	Dead(ctx context.Context) (int, error)
	// Each yields every waiting task.
	Each(ctx context.Context, yield func(Task) error) error
	Close() error
}

// Handler is called by a library for each delivery. Its error is a failure of the task.
type Handler interface {
	Handle(t Task) error
}

// Prover is a library that can prove how it handled the tasks.
type Prover interface {
	// Prove checks after a drain that each of n tasks took the whole path.
	Prove(ctx context.Context, s Scenario, n int) error
}

// Asker is a library that plays the scenarios with requests.
type Asker interface {
	// Serve begins to answer requests, each with its task, after the handler has seen that. Ask
	// sends one, and waits for its answer unless the scenario has none. It is safe for concurrent
	// use.
	Serve(ctx context.Context, handle Handler) (ask func(context.Context, Task) error, stop func() error, err error)
}

// Bearer is a library that plays the scenarios with a burden. Left, Dead and Prove do not count the
// burden.
type Bearer interface {
	// Burden adds the waiting and dead messages of the burden.
	Burden(ctx context.Context) error
	// Foreign enqueues tasks in a foreign transaction, which is open until commit.
	Foreign(ctx context.Context, list []Task) (commit func() error, err error)
}

// Setup describes the scenario and the store of a library.
type Setup struct {
	Scenario    Scenario
	Folder      string // of its file, if it has one
	Synchronous string // of peers with a file: NORMAL or FULL
	URL         string // of its database, if it has a server
	Postmaster  int    // process of that server; 0 means unknown
	Burden      int    // size of the burden
}

// Entrant is a library that takes part.
type Entrant struct {
	Name     string
	Kind     Kind
	Module   string     // path of its module, for its version
	Settings string     // for the reader
	Streams  bool       // keeps the order of streams; other libraries do not
	Only     []Scenario // in which it takes part; nil means all
	Open     func(ctx context.Context, s Setup) (Library, error)
}

// Kind is the role of an entrant.
type Kind string

// The kinds.
const (
	Ours  Kind = "ours"
	Peer  Kind = "peer"
	Limit Kind = "limit" // the best that a store could do
)

// Plays reports whether an entrant takes part in a scenario.
func (e *Entrant) Plays(s Scenario) bool {
	return (e.Only == nil || slices.Contains(e.Only, s)) && (e.Kind == Ours || !s.Alone())
}
