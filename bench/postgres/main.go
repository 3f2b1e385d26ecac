// Command postgres measures Nixie and other libraries for Go on a PostgreSQL server, alternately in
// one run, and checks the work of each. README.md in the folder above explains the scenarios and
// the numbers.
package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/bench/entrants/ours"
	"github.com/nixie-go/nixie/bench/match"
	"github.com/nixie-go/nixie/bench/postgres/entrants/river"
	"github.com/nixie-go/nixie/bench/postgres/entrants/watermill"
	"github.com/nixie-go/nixie/bench/postgres/rawlimit"
	"github.com/nixie-go/nixie/store/postgres"
)

func main() { programme().Main() }

func programme() *match.Programme {
	return &match.Programme{
		Name: "postgres",
		Scenarios: []contest.Scenario{
			contest.EnqueueOne, contest.EnqueueMany, contest.EnqueueBatch, contest.EnqueueBatches,
			contest.Drain, contest.Metrics, contest.Traces, contest.Streams, contest.FailsOnce, contest.DeadFew, contest.DeadAll,
			contest.PickUp,
			contest.RoundTrip, contest.Calls, contest.Sends,
		},
		Asked: []contest.Scenario{contest.Blocked, contest.Scheduled, contest.Foreign},
		Entrants: append([]contest.Entrant{
			ours.Entrant(shared()), river.Entrant(), watermill.ByOffset(), watermill.ByRow(),
		}, rawlimit.Entrants()...),
		Targets: targets(),
		Open:    open,
	}
}

// shared is Nixie's store for many machines. Producers have a store of their own, so workers hear
// of new messages only from the server.
func shared() ours.Store {
	return ours.Store{
		Name: "PostgreSQL", Batch: 5000, SeparateProducers: true,
		Open: func(ctx context.Context, s contest.Setup) (ours.Opened, error) {
			return postgres.Open(ctx, s.URL, postgres.Options{})
		},
		Foreign: enqueueAndWait,
	}
}

// enqueueAndWait enqueues in a transaction of its own connection.
func enqueueAndWait(ctx context.Context, s contest.Setup, to ours.Opened, messages []nixie.Message) (commit func() error, err error) {
	conn, err := pgx.Connect(ctx, s.URL)
	if err != nil {
		return nil, err
	}
	tx, err := conn.Begin(ctx)
	if err == nil {
		_, err = to.(*postgres.Store).Tx(tx).Enqueue(ctx, messages...)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return func() error { return errors.Join(tx.Commit(ctx), conn.Close(ctx)) }, nil
}

// targets lists all targets. They are about processor time of client and server unless they name
// another cost.
func targets() []match.Target {
	river, watermill := match.Named("river"), match.Named("watermill-offset", "watermill-queue")
	return []match.Target{
		{Name: "drain", Scenario: contest.Drain, Against: river, Least: 10},
		{Name: "drain-of-watermill", Scenario: contest.Drain, Against: watermill, Least: 1.4},
		{Name: "telemetry-metrics", Scenario: contest.Metrics, Than: contest.Drain, Least: 0.97},
		{Name: "telemetry-traces", Scenario: contest.Traces, Than: contest.Drain, Least: 0.90},
		{Name: "streams", Scenario: contest.Streams, Against: river, Least: 2.6},
		{Name: "fails-once", Scenario: contest.FailsOnce, Against: river, Least: 2.8},
		{Name: "dead-100", Scenario: contest.DeadAll, Against: river, Least: 2.8},
		{Name: "enqueue-32", Scenario: contest.EnqueueMany, Against: river, Least: 8},
		{Name: "enqueue-batch", Scenario: contest.EnqueueBatch, Against: river, Least: 2},
		{Name: "enqueue-batch-4", Scenario: contest.EnqueueBatches, Against: river, Least: 2},
		{Name: "pick-up", Scenario: contest.PickUp, Cost: match.FromCall, Against: river, Most: 1},
		{Name: "pick-up-late", Scenario: contest.PickUp, Cost: match.LateFromReturn, Than: contest.PickUp, ThanCost: match.FromReturn,
			Most: 3},
		{Name: "pick-up-server", Scenario: contest.PickUp, Cost: match.Server, Against: river, Most: 1.2},
		{Name: "wal", Scenario: contest.Drain, Cost: (*contest.Result).WALEach, Against: river, Least: 2},
		{Name: "with-blocked", Scenario: contest.Blocked, Than: contest.Streams, Least: 0.9},
		{Name: "with-scheduled", Scenario: contest.Scheduled, Than: contest.Drain, Least: 0.9},
		{Name: "with-foreign", Scenario: contest.Foreign, Than: contest.Drain, Least: 0.9},
		{Name: "loop-round-trip", Scenario: contest.RoundTrip, Cost: match.FromCall, Than: contest.PickUp, Most: 3},
		{Name: "loop-calls", Scenario: contest.Calls, Than: contest.Sends, Least: 0.4},
	}
}
