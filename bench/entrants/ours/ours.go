// Package ours lets Nixie take part with the store that a programme opens. It uses Nixie as a
// program would: a type, a worker over routes, and the default policy, changed only where a
// scenario asks.
package ours

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	concurrency = 2
	prefetch    = 10_000
)

// Store is a store that can be opened.
type Store struct {
	Name              string // for the reader, with its settings
	Open              func(ctx context.Context, s contest.Setup) (Opened, error)
	Batch             int  // messages an Enqueue of many
	SeparateProducers bool // producers open the store again, as if they were on another machine
	// Foreign enqueues in a transaction that is open until commit; may be nil.
	Foreign func(ctx context.Context, s contest.Setup, to Opened, messages []nixie.Message) (commit func() error, err error)
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
		Settings: fmt.Sprintf("%s, %d handlers, prefetch %d, %d messages an Enqueue", on.Name, concurrency, prefetch, on.Batch),
	}
}

type library struct {
	store    Opened
	producer Opened // the same store, or one opened separately
	on       Store
	setup    contest.Setup
	kind     nixie.Type[contest.Task]
	decider  *counted
	observer *nixie.Observer                   // of a scenario with telemetry
	spans    func(nixie.Handler) nixie.Handler // of a scenario with traces
	ended    func() error                      // ends what sends traces
	inHand   atomic.Int64                      // received and not settled
}

// counted is the policy, and counts its decisions.
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
		decider: &counted{Policy: p}, on: on, setup: s,
		kind: nixie.NewType[contest.Task]("task", nixie.Queue(queue)),
	}
	if err := l.observe(s.Scenario); err != nil {
		return nil, err
	}
	if l.store, err = on.Open(ctx, s); err != nil {
		return nil, err
	}
	if l.producer = l.store; on.SeparateProducers {
		if l.producer, err = on.Open(ctx, s); err != nil {
			return nil, errors.Join(err, l.store.Close())
		}
	}
	if s.Scenario.Ordered() {
		if err := store.Configure(ctx, l.store, queue, nixie.QueueSettings{Order: nixie.OrderStrict}, "bench",
			"a scenario with streams"); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

// policyFor returns the default policy without delays after failures.
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

// options returns the options of one message.
func (l *library) options(t contest.Task) []nixie.Option {
	if !l.setup.Scenario.Ordered() {
		return nil
	}
	return []nixie.Option{nixie.Stream(fmt.Sprintf("stream-%03d", contest.Stream(t.I)))}
}

func (l *library) Batch() int { return l.on.Batch }

func (l *library) EnqueueBatch(ctx context.Context, list []contest.Task) error {
	messages, err := l.messages(list)
	if err != nil {
		return err
	}
	_, err = l.producer.Enqueue(ctx, messages...)
	return err
}

func (l *library) messages(list []contest.Task) ([]nixie.Message, error) {
	messages := make([]nixie.Message, len(list))
	for i, t := range list {
		m, err := l.kind.Message(t, l.options(t)...)
		if err != nil {
			return nil, err
		}
		messages[i] = m
	}
	return messages, nil
}

func (l *library) Start(ctx context.Context, handle contest.Handler) (func() error, error) {
	handler := func(_ context.Context, job *nixie.Job[contest.Task]) error { return handle.Handle(job.Body) }
	routes := nixie.Routes(l.kind.Handle(handler))
	if l.spans != nil {
		routes = l.spans(routes)
	}
	w, err := worker.New(worker.Config{
		Source:      store.NewSource(store.Observe(l.store, l.observer), queue),
		Handler:     routes,
		Policy:      l.decider.Policy,
		Decider:     l.decider,
		Concurrency: concurrency,
		Prefetch:    prefetch,
		Logger:      slog.New(slog.DiscardHandler), // as the others have
		Observer: nixie.Tee(l.observer, &nixie.Observer{
			Received: func(_ string, list []*nixie.Delivery) { l.inHand.Add(int64(len(list))) },
			Settled:  func(_ string, list []nixie.Settlement, _ []error) { l.inHand.Add(-int64(len(list))) },
		}),
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

func (l *library) Close() (err error) {
	if l.ended != nil {
		err = l.ended()
	}
	if l.producer != l.store {
		err = errors.Join(err, l.producer.Close())
	}
	return errors.Join(err, l.store.Close())
}
