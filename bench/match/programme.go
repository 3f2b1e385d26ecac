package match

import (
	"context"
	"flag"

	"github.com/nixie-go/nixie/bench/contest"
)

// Programme is what a command measures.
type Programme struct {
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

// Target is what Nixie is to reach.
type Target struct {
	Name     string
	Scenario contest.Scenario
	Want     float64
	Merit    Merit // nil is the rate

	// What it is compared with: the best of some entrants, itself in a scenario
	// without a burden, or a merit that is enough whoever else plays.
	Against func(*contest.Entrant) bool
	Than    contest.Scenario
	Limit   float64
}

// Merit is the number by which results are compared; more is better.
type Merit func(*contest.Result) float64

// Kind is those of a kind.
func Kind(k contest.Kind) func(*contest.Entrant) bool {
	return func(e *contest.Entrant) bool { return e.Kind == k }
}
