// Command redis measures Nixie's mailboxes and other libraries for Go on a Redis server,
// alternately in one run, and checks the work of each. README.md in the folder above explains the
// scenarios and the numbers.
package main

import (
	"time"

	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/bench/match"
	"github.com/nixie-go/nixie/bench/redis/entrants/asynq"
	"github.com/nixie-go/nixie/bench/redis/entrants/mailbox"
	"github.com/nixie-go/nixie/bench/redis/entrants/watermill"
	"github.com/nixie-go/nixie/bench/redis/rawlimit"
)

func main() { programme().Main() }

func programme() *match.Programme {
	return &match.Programme{
		Name: "redis",
		Scenarios: []contest.Scenario{
			contest.EnqueueMany, contest.EnqueueBatch, contest.Drain, contest.FailsOnce, contest.DeadAll, contest.PickUp,
			contest.RoundTrip,
		},
		Entrants: append([]contest.Entrant{mailbox.Entrant(), asynq.Entrant(), watermill.Entrant()}, rawlimit.Entrants()...),
		Targets:  targets(),
		Rounds:   3, Aim: time.Second / 2,
		Open: open,
	}
}

// targets lists all targets. They are about processor time of client and server unless they name
// another cost.
func targets() []match.Target {
	asynq, watermill, script := match.Named("asynq"), match.Named("watermill"), match.Named("script")
	return []match.Target{
		{Name: "drain", Scenario: contest.Drain, Against: asynq, Least: 6},
		{Name: "drain-of-watermill", Scenario: contest.Drain, Against: watermill, Least: 3},
		{Name: "drain-of-script", Scenario: contest.Drain, Against: script, Least: 0.6},
		{Name: "fails-once", Scenario: contest.FailsOnce, Against: asynq, Least: 4},
		{Name: "dead-100", Scenario: contest.DeadAll, Against: asynq, Least: 4},
		{Name: "enqueue-batch", Scenario: contest.EnqueueBatch, Against: asynq, Least: 4},
		{Name: "enqueue-32", Scenario: contest.EnqueueMany, Against: asynq, Least: 1.5},
		{Name: "pick-up", Scenario: contest.PickUp, Cost: match.FromCall, Fixed: time.Millisecond, Most: 1},
		{Name: "pick-up-late", Scenario: contest.PickUp, Cost: match.LateFromCall, Fixed: 5 * time.Millisecond, Most: 1},
		{Name: "loop-round-trip", Scenario: contest.RoundTrip, Cost: match.FromCall, Than: contest.PickUp, Most: 3},
	}
}
