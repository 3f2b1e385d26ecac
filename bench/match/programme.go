package match

import (
	"context"
	"flag"
	"slices"

	"github.com/nixie-go/nixie/bench/contest"
)

// Programme is what a command measures.
type Programme struct {
	Name      string             // of its section in a document
	Scenarios []contest.Scenario // in the order they are reported
	Asked     []contest.Scenario // those that are measured only when they are named
	Entrants  []contest.Entrant  // likewise
	Targets   []Target
	Flags     func(*flag.FlagSet)           // adds its own; may be nil
	Note      func(contest.Scenario) string // what is special in a scenario; may be nil
	// Open prepares the ground in a folder.
	Open func(ctx context.Context, folder string) (Ground, error)
}

// Ground is what all measurements of a run stand on: a disk, or a server.
type Ground interface {
	// Facts are lines for the reader.
	Facts() []string
	// Place makes room for one measurement.
	Place(ctx context.Context, s contest.Scenario) (Place, error)
	Close() error
}

// Place is where one measurement happens.
type Place interface {
	Setup() contest.Setup
	// Begin is called before messages are enqueued, and before they are worked off
	// in a process of its own; all have closed.
	Begin(ctx context.Context) error
	// End is called after each of these parts and adds what it sees to the result.
	End(ctx context.Context, r *contest.Result) error
	Remove(ctx context.Context) error
}

// Target bounds what a message costs Nixie by what it costs another in the same round.
// It is against the best of some entrants, or against Nixie itself.
type Target struct {
	Name     string
	Scenario contest.Scenario
	Cost     Cost // nil is [Processor]

	Against  func(*contest.Entrant) bool
	Than     contest.Scenario // of Nixie itself, instead of Against
	ThanCost Cost             // of the other side; nil is Cost

	// One of them is set.
	Least float64 // it costs the other so many times more at least
	Most  float64 // it costs Nixie so many times what it costs the other at most
}

// Cost is the number by which results are compared; less is better.
type Cost func(*contest.Result) float64

// Processor is the processor time of client and server that a message took.
func Processor(r *contest.Result) float64 { return (r.CPU + r.ServerCPU).Seconds() / float64(r.N) }

// Server is the server's part of it.
func Server(r *contest.Result) float64 { return r.ServerCPU.Seconds() / float64(r.N) }

// Clock is the time that passed for each message.
func Clock(r *contest.Result) float64 { return 1 / r.Rate() }

// FromCall is how long half of the messages took from the call to their handlers.
func FromCall(r *contest.Result) float64 { return r.Latency.FromCall.P50.Seconds() }

// FromReturn is the same from the return of the call.
func FromReturn(r *contest.Result) float64 { return r.Latency.FromReturn.P50.Seconds() }

// LateFromReturn is what one message in a hundred took longer than.
func LateFromReturn(r *contest.Result) float64 { return r.Latency.FromReturn.P99.Seconds() }

// Kind is those of a kind.
func Kind(k contest.Kind) func(*contest.Entrant) bool {
	return func(e *contest.Entrant) bool { return e.Kind == k }
}

// Named is those with these names.
func Named(names ...string) func(*contest.Entrant) bool {
	return func(e *contest.Entrant) bool { return slices.Contains(names, e.Name) }
}
