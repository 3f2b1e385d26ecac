// Package ours lets Nixie take part with the store that a programme opens. It is
// used as a program would use it: a type, a worker over routes, the default policy
// but for what a scenario asks of it.
package ours

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/worker"
)

const (
	queue       = "bench"
	batch       = 1000
	concurrency = 2
	prefetch    = 10_000
)

// Store is a store that can be opened.
type Store struct {
	Name  string // for the reader, with its settings
	Open  func(ctx context.Context, s contest.Setup) (Opened, error)
	Apart bool // producers open it once more, as if they were on another machine
}

// Opened is an open store.
type Opened interface {
	store.Store
	Close() error
}

// Entrant is Nixie.
func Entrant(on Store) contest.Entrant {
	return contest.Entrant{
		Name: "nixie", Kind: contest.Ours, Streams: true,
		Open:     func(ctx context.Context, s contest.Setup) (contest.Library, error) { return open(ctx, on, s) },
		Settings: fmt.Sprintf("%s, %d handlers, prefetch %d, %d messages an Enqueue", on.Name, concurrency, prefetch, batch),
	}
}

type library struct {
	store    Opened
	producer Opened // the same, or one that knows nothing of it
	streams  bool
	kind     nixie.Type[contest.Task]
	decider  *counted
	inHand   atomic.Int64 // received and not settled
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

func open(ctx context.Context, on Store, s contest.Setup) (_ contest.Library, err error) {
	p, err := policy.New(policyFor(s.Scenario))
	if err != nil {
		return nil, err
	}
	l := &library{
		decider: &counted{Policy: p}, streams: s.Scenario == contest.Streams,
		kind: nixie.NewType[contest.Task]("task", nixie.Queue(queue)),
	}
	if l.store, err = on.Open(ctx, s); err != nil {
		return nil, err
	}
	if l.producer = l.store; on.Apart {
		if l.producer, err = on.Open(ctx, s); err != nil {
			return nil, errors.Join(err, l.store.Close())
		}
	}
	if l.streams {
		if err := l.store.Configure(ctx, queue, nixie.QueueSettings{Order: nixie.OrderStrict}, "bench", "a scenario with streams"); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
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
	_, err := l.kind.Enqueue(ctx, l.producer, t, l.options(t)...)
	return err
}

// options are those of one message.
func (l *library) options(t contest.Task) []nixie.Option {
	if !l.streams {
		return nil
	}
	return []nixie.Option{nixie.Stream(fmt.Sprintf("stream-%03d", contest.Stream(t.I)))}
}

func (l *library) Batch() int { return batch }

func (l *library) EnqueueBatch(ctx context.Context, list []contest.Task) error {
	messages := make([]nixie.Message, len(list))
	for i, t := range list {
		m, err := l.kind.Message(t, l.options(t)...)
		if err != nil {
			return err
		}
		messages[i] = m
	}
	_, err := l.producer.Enqueue(ctx, messages...)
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
		Observer: &nixie.Observer{
			Received: func(_ string, list []*nixie.Delivery) { l.inHand.Add(int64(len(list))) },
			Settled:  func(_ string, list []nixie.Settlement, _ []error) { l.inHand.Add(-int64(len(list))) },
		},
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

// Left asks the store only when the worker has nothing: an overview of a queue is
// much work that a queue at work should not be measured with.
func (l *library) Left(ctx context.Context) (int, error) {
	if n := l.inHand.Load(); n > 0 {
		return int(n), nil
	}
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

func (l *library) Close() error {
	if l.producer == l.store {
		return l.store.Close()
	}
	return errors.Join(l.producer.Close(), l.store.Close())
}
