// Command postgres measures Nixie and other libraries for Go on a PostgreSQL
// server, in one run and in turns, and checks that each of them did the work. The
// README.md of the folder above says what is measured and how to read it.
package main

import (
	"context"
	"errors"
	"slices"
	"time"

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
		Scenarios: []contest.Scenario{
			contest.EnqueueOne, contest.EnqueueMany, contest.EnqueueBatch, contest.EnqueueBatches,
			contest.Drain, contest.Streams, contest.FailsOnce, contest.DeadFew, contest.DeadAll, contest.PickUp,
		},
		Asked: []contest.Scenario{contest.Blocked, contest.Scheduled, contest.Foreign},
		Entrants: append([]contest.Entrant{
			ours.Entrant(shared()), river.Entrant(), watermill.ByOffset(), watermill.ByRow(),
		}, rawlimit.Entrants()...),
		Targets: targets(),
		Open:    open,
	}
}

// shared is Nixie's store of many machines. Producers have a store of their own:
// what workers hear of them they hear from the server.
func shared() ours.Store {
	return ours.Store{
		Name: "PostgreSQL", Batch: 5000, Apart: true,
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

// targets lists all. A ratio above 1 means that Nixie is better: rates are
// divided by the other's rate, waits and bytes divide the other's.
func targets() []match.Target {
	river, watermill := named("river"), named("watermill-offset", "watermill-queue")
	return []match.Target{
		{Name: "drain", Scenario: contest.Drain, Against: river, Want: 10},
		{Name: "drain-of-watermill", Scenario: contest.Drain, Against: watermill, Want: 2},
		{Name: "drain-streams", Scenario: contest.Streams, Against: river, Want: 3},
		{Name: "fails-once", Scenario: contest.FailsOnce, Against: river, Want: 5},
		{Name: "dead-100", Scenario: contest.DeadAll, Against: river, Want: 5},
		{Name: "enqueue-32", Scenario: contest.EnqueueMany, Against: river, Want: 3},
		{Name: "enqueue-batch", Scenario: contest.EnqueueBatch, Against: river, Want: 2.5},
		{Name: "enqueue-batch-4", Scenario: contest.EnqueueBatches, Against: river, Want: 4},
		{Name: "pick-up-p50", Scenario: contest.PickUp, Merit: soon(p50), Limit: 1 / (3 * time.Millisecond).Seconds(), Want: 1},
		{Name: "pick-up-p99", Scenario: contest.PickUp, Merit: soon(p99), Limit: 1 / (10 * time.Millisecond).Seconds(), Want: 1},
		{Name: "wal", Scenario: contest.Drain, Merit: frugal, Against: river, Want: 2},
		{Name: "beside-blocked", Scenario: contest.Blocked, Than: contest.Streams, Want: 0.9},
		{Name: "beside-scheduled", Scenario: contest.Scheduled, Than: contest.Drain, Want: 0.9},
		{Name: "beside-foreign", Scenario: contest.Foreign, Than: contest.Drain, Want: 0.9},
	}
}

func named(names ...string) func(*contest.Entrant) bool {
	return func(e *contest.Entrant) bool { return slices.Contains(names, e.Name) }
}

func p50(l *contest.Latency) time.Duration { return l.FromCall.P50 }
func p99(l *contest.Latency) time.Duration { return l.FromCall.P99 }

// soon is the merit of a short wait.
func soon(wait func(*contest.Latency) time.Duration) match.Merit {
	return func(r *contest.Result) float64 { return 1 / wait(r.Latency).Seconds() }
}

// frugal is the merit of writing little.
func frugal(r *contest.Result) float64 { return 1 / r.WALEach() }
