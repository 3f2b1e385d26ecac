package match

import (
	"context"
	"flag"
	"slices"
	"time"

	"github.com/nixie-go/nixie/bench/contest"
)

// Programme describes the measurements of a command.
type Programme struct {
	Name      string             // of its section in a document
	Scenarios []contest.Scenario // in the order they are reported
	Asked     []contest.Scenario // measured only when they are named
	Entrants  []contest.Entrant  // likewise
	Targets   []Target
	Rounds    int                           // usual number; 0 means 5
	Aim       time.Duration                 // usual length of a measurement; 0 means 1.5 s
	Flags     func(*flag.FlagSet)           // adds its own; may be nil
	Note      func(contest.Scenario) string // a note about a scenario; may be nil
	// Open prepares the host in a folder.
	Open func(ctx context.Context, folder string) (Host, error)
}

// Host holds the stores of all measurements of a run: a disk, or a server.
type Host interface {
	// Facts are lines for the reader.
	Facts() []string
	// Workspace makes the workspace of one measurement.
	Workspace(ctx context.Context, s contest.Scenario) (Workspace, error)
	Close() error
}

// Workspace is the folder or database of one measurement.
type Workspace interface {
	Setup() contest.Setup
	// Begin is called before messages are enqueued, and again before another process drains them;
	// no process has the store open then.
	Begin(ctx context.Context) error
	// End is called after each of these parts and adds its sizes to the result.
	End(ctx context.Context, r *contest.Result) error
	Remove(ctx context.Context) error
}

// Target bounds the cost of a message in Nixie by its cost in another entrant, in the same round.
// It compares with the best of some entrants, with another scenario of Nixie, or with a fixed time.
type Target struct {
	Name     string
	Scenario contest.Scenario
	Cost     Cost // nil means [Processor]

	Against  func(*contest.Entrant) bool
	Than     contest.Scenario // of Nixie itself, instead of Against
	ThanCost Cost             // of the other side; nil means Cost
	Fixed    time.Duration    // instead of another side: a cost that is a time

	// One of them is set.
	Least float64 // the least ratio of the other's cost to Nixie's
	Most  float64 // the highest ratio of Nixie's cost to the other's
}

// Cost returns the number by which results are compared; less is better.
type Cost func(*contest.Result) float64

// Processor returns the processor time of client and server for each message.
func Processor(r *contest.Result) float64 { return (r.CPU + r.ServerCPU).Seconds() / float64(r.N) }

// Server returns the server's part of it.
func Server(r *contest.Result) float64 { return r.ServerCPU.Seconds() / float64(r.N) }

// Clock returns the elapsed time for each message.
func Clock(r *contest.Result) float64 { return 1 / r.Rate() }

// FromCall returns the median time from the call to the handler.
func FromCall(r *contest.Result) float64 { return r.Latency.FromCall.P50.Seconds() }

// LateFromCall returns the 99th percentile of the time from the call to the handler.
func LateFromCall(r *contest.Result) float64 { return r.Latency.FromCall.P99.Seconds() }

// FromReturn returns the median time from the return of the call to the handler.
func FromReturn(r *contest.Result) float64 { return r.Latency.FromReturn.P50.Seconds() }

// LateFromReturn returns the 99th percentile of the time from the return of the call to the
// handler.
func LateFromReturn(r *contest.Result) float64 { return r.Latency.FromReturn.P99.Seconds() }

// Kind selects the entrants of a kind.
func Kind(k contest.Kind) func(*contest.Entrant) bool {
	return func(e *contest.Entrant) bool { return e.Kind == k }
}

// Named selects the entrants with these names.
func Named(names ...string) func(*contest.Entrant) bool {
	return func(e *contest.Entrant) bool { return slices.Contains(names, e.Name) }
}
