// Package ours lets Nixie take part, with its embedded store as it is: WAL and
// synchronous FULL. It is used as a program would use it: a type, a worker over
// routes, the default policy but for what a scenario asks of it.
package ours

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/worker"
)

const (
	queue       = "bench"
	batch       = 1000
	concurrency = 2
	prefetch    = 10_000
)

// Entrant is Nixie.
func Entrant() contest.Entrant {
	return contest.Entrant{
		Name: "nixie", Kind: contest.Ours, Open: open,
		Settings: fmt.Sprintf("SQLite %s (modernc.org/sqlite), FULL, %d handlers, prefetch %d, %d messages an Enqueue",
			sqlite.EngineVersion(), concurrency, prefetch, batch),
	}
}

type library struct {
	store   *sqlite.Store
	kind    nixie.Type[contest.Task]
	decider *counted
}

// counted is the policy and counts its decisions.
type counted struct {
	*policy.Policy
	decisions atomic.Int64
}

// Decide implements policy.Decider.
func (c *counted) Decide(d *nixie.Delivery, f *nixie.Failure, now time.Time) nixie.Settlement {
	c.decisions.Add(1)
	return c.Policy.Decide(d, f, now)
}

func open(_ context.Context, s contest.Setup) (contest.Library, error) {
	p, err := policy.New(policyFor(s.Scenario))
	if err != nil {
		return nil, err
	}
	st, err := sqlite.Open(filepath.Join(s.Folder, "nixie.db"), sqlite.Options{})
	if err != nil {
		return nil, err
	}
	return &library{
		store: st, decider: &counted{Policy: p},
		kind: nixie.NewType[contest.Task]("task", nixie.Queue(queue)),
	}, nil
}

// policyFor is the default policy, but that failures are not waited for.
func policyFor(s contest.Scenario) policy.Config {
	switch {
	case s == contest.FailsOnce:
		return policy.Config{Backoff: policy.Backoff{Base: -1}}
	case s.Attempts() == 1:
		return policy.Config{MaxAttempts: 1}
	default:
		return policy.Config{}
	}
}

func (l *library) Enqueue(ctx context.Context, t contest.Task) error {
	_, err := l.kind.Enqueue(ctx, l.store, t)
	return err
}

func (l *library) Batch() int { return batch }

func (l *library) EnqueueBatch(ctx context.Context, list []contest.Task) error {
	messages := make([]nixie.Message, len(list))
	for i, t := range list {
		m, err := l.kind.Message(t)
		if err != nil {
			return err
		}
		messages[i] = m
	}
	_, err := l.store.Enqueue(ctx, messages...)
	return err
}

func (l *library) Start(ctx context.Context, handle contest.Handler) (func() error, error) {
	w, err := worker.New(worker.Config{
		Source:      store.NewSource(l.store, queue),
		Handler:     nixie.Routes(l.kind.Handle(func(_ context.Context, job *nixie.Job[contest.Task]) error { return handle.Handle(job.Body) })),
		Policy:      l.decider.Policy,
		Decider:     l.decider,
		Concurrency: concurrency,
		Prefetch:    prefetch,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}, nil
}

func (l *library) info(ctx context.Context) (nixie.QueueInfo, error) {
	list, err := l.store.Queues(ctx)
	switch {
	case err != nil:
		return nixie.QueueInfo{}, err
	case len(list) != 1:
		return nixie.QueueInfo{}, fmt.Errorf("%d queues, not 1", len(list))
	}
	return list[0], nil
}

func (l *library) Left(ctx context.Context) (int, error) {
	q, err := l.info(ctx)
	return int(q.Ready + q.Blocked + q.Scheduled + q.Leased), err
}

func (l *library) Dead(ctx context.Context) (int, error) {
	q, err := l.info(ctx)
	return int(q.Dead), err
}

func (l *library) Each(ctx context.Context, yield func(contest.Task) error) error {
	return l.pages(ctx, store.Page{Whole: true}, func(r *store.Record) error {
		t, err := contest.Decode(r.Body)
		if err != nil {
			return err
		}
		return yield(t)
	})
}

// pages yields every message of the store.
func (l *library) pages(ctx context.Context, page store.Page, yield func(*store.Record) error) error {
	for page.Limit = 1000; ; {
		list, next, err := l.store.Messages(ctx, nixie.Filter{}, page)
		if err != nil {
			return err
		}
		for i := range list {
			if err := yield(&list[i]); err != nil {
				return err
			}
		}
		if next == "" {
			return nil
		}
		page.Cursor = next
	}
}

// Prove implements contest.Prover: the store has one record of each message,
// which says how it ended and after how many attempts, and each run was decided
// by the policy.
// Tasks reach the ledger through their type alone, so all were decoded.
func (l *library) Prove(ctx context.Context, s contest.Scenario, n int) error {
	dead := s.Dead(n)
	if got, want := l.decider.decisions.Load(), int64(n*s.Runs()); got != want {
		return fmt.Errorf("%d decisions, not %d", got, want)
	}
	ends := map[nixie.State]int{}
	ids := make(map[nixie.ID]bool, n)
	err := l.pages(ctx, store.Page{}, func(r *store.Record) error {
		if r.Attempts != s.Runs() || r.EndedAt.IsZero() {
			return fmt.Errorf("message %s is %s after %d attempts, not %d", r.ID, r.State, r.Attempts, s.Runs())
		}
		ids[r.ID] = true
		ends[r.State]++
		return nil
	})
	if err != nil {
		return err
	}
	if len(ids) != n || ends[nixie.Succeeded] != n-dead || ends[nixie.Dead] != dead {
		return fmt.Errorf("%d messages in the log, which ended %v: not %d, %d of them dead", len(ids), ends, n, dead)
	}
	return nil
}

func (l *library) Close() error { return l.store.Close() }
