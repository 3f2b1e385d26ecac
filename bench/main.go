// Command bench measures Nixie and other queues for Go on SQLite, alternately in one run, and
// checks the work of each. README.md explains the scenarios and the numbers. The command in
// postgres does the same on a server.
package main

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"

	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/bench/entrants/backlite"
	"github.com/nixie-go/nixie/bench/entrants/goqite"
	"github.com/nixie-go/nixie/bench/entrants/ours"
	"github.com/nixie-go/nixie/bench/entrants/river"
	"github.com/nixie-go/nixie/bench/match"
	"github.com/nixie-go/nixie/bench/rawlimit"
	"github.com/nixie-go/nixie/store/sqlite"
)

func main() { programme().Main() }

func programme() *match.Programme {
	peers := &synchronous{}
	return &match.Programme{
		Name: "sqlite",
		Scenarios: []contest.Scenario{
			contest.EnqueueOne, contest.EnqueueMany, contest.EnqueueBatch,
			contest.Drain, contest.Metrics, contest.Traces, contest.FailsOnce, contest.DeadFew, contest.DeadAll, contest.PickUp,
			contest.RoundTrip, contest.Calls, contest.Sends,
		},
		Entrants: append([]contest.Entrant{ours.Entrant(embedded()), goqite.Entrant(), backlite.Entrant(), river.Entrant()},
			rawlimit.Entrants()...),
		Targets: targets(),
		Flags: func(flags *flag.FlagSet) {
			flags.Func("peers-synchronous",
				"SQLite's setting for peers in every scenario: NORMAL or FULL; without it FULL for durable enqueues (enqueue-1, "+
					"enqueue-32) and NORMAL for others. Nixie is always at FULL", peers.set)
		},
		Note: func(s contest.Scenario) string { return "peers at " + peers.at(s) },
		Open: peers.host,
	}
}

// embedded is Nixie's store in a file with its defaults: WAL and synchronous FULL.
func embedded() ours.Store {
	return ours.Store{
		Name: fmt.Sprintf("SQLite %s (modernc.org/sqlite), FULL", sqlite.EngineVersion()), Batch: 1000,
		Open: func(_ context.Context, s contest.Setup) (ours.Opened, error) {
			return sqlite.Open(filepath.Join(s.Folder, "nixie.db"), sqlite.Options{})
		},
	}
}

// targets lists all targets. They are about processor time unless they name another cost.
func targets() []match.Target {
	peer := match.Kind(contest.Peer)
	return []match.Target{
		{Name: "drain", Scenario: contest.Drain, Against: peer, Least: 10},
		{Name: "drain-of-raw", Scenario: contest.Drain, Against: match.Kind(contest.Limit), Least: 0.60},
		{Name: "telemetry-metrics", Scenario: contest.Metrics, Than: contest.Drain, Least: 0.97},
		{Name: "telemetry-traces", Scenario: contest.Traces, Than: contest.Drain, Least: 0.90},
		{Name: "fails-once", Scenario: contest.FailsOnce, Against: peer, Least: 4},
		{Name: "dead-100", Scenario: contest.DeadAll, Against: peer, Least: 4.5},
		{Name: "enqueue-1", Scenario: contest.EnqueueOne, Against: peer, Least: 0.9},
		{Name: "enqueue-32", Scenario: contest.EnqueueMany, Against: peer, Least: 3},
		{Name: "enqueue-batch", Scenario: contest.EnqueueBatch, Against: peer, Least: 2},
		{Name: "pick-up-from-return", Scenario: contest.PickUp, Cost: match.FromReturn, Against: peer, Most: 1.3},
		{Name: "pick-up-from-call", Scenario: contest.PickUp, Cost: match.FromCall, Than: contest.EnqueueOne, ThanCost: match.Clock,
			Most: 1.5},
		{Name: "loop-round-trip", Scenario: contest.RoundTrip, Cost: match.FromCall, Than: contest.PickUp, Most: 3},
		{Name: "loop-calls", Scenario: contest.Calls, Than: contest.Sends, Least: 0.4},
	}
}

// synchronous is SQLite's setting for peers; empty means that of the scenario.
type synchronous struct{ always string }

func (p *synchronous) set(text string) error {
	if text != "NORMAL" && text != "FULL" {
		return fmt.Errorf("give NORMAL or FULL")
	}
	p.always = text
	return nil
}

// at returns the setting in a scenario.
func (p *synchronous) at(s contest.Scenario) string {
	switch {
	case p.always != "":
		return p.always
	case s.Durable():
		return "FULL"
	}
	return "NORMAL"
}
