// Package mailbox lets Nixie take part with the mailboxes of its driver for Redis. It uses Nixie as
// a program would: a publisher, a worker on the source of a mailbox, and the default policy, which
// is changed only where a scenario asks. Letters go to the mailbox that is usual for them.
package mailbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/bench/entrants/asking"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/redis"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/worker"
)

// Name is the name of the mailbox.
const Name = "bench"

const (
	batch       = 1000
	concurrency = 2
	prefetch    = nixie.MaxBatch
	again       = time.Millisecond // the wait before a retry, which makes it wait in the mailbox
)

// Entrant is Nixie.
func Entrant() contest.Entrant {
	return contest.Entrant{
		Name: "nixie", Kind: contest.Ours, Open: open,
		Settings: fmt.Sprintf("%d handlers, prefetch %d, %d records a Publish; retries wait %s in the mailbox, letters are in another one",
			concurrency, prefetch, batch, again),
	}
}

type library struct {
	rules    policy.Config
	producer *redis.Publisher
	records  *redis.Driver
	letters  *redis.Driver
	answers  *redis.Driver // of a scenario with requests
	inHand   atomic.Int64  // received and not settled
	settled  atomic.Int64
}

func open(ctx context.Context, s contest.Setup) (_ contest.Library, err error) {
	at := redis.Address{Servers: []string{s.URL}}
	l := &library{rules: policyFor(s.Scenario)}
	if l.producer, err = redis.Connect(at); err != nil {
		return nil, err
	}
	at.Mailbox = Name
	if l.records, err = redis.Open(ctx, redis.Config{Address: at}); err != nil {
		return nil, err
	}
	at.Mailbox = broker.ChannelName(broker.DefaultLetters, Name)
	if l.letters, err = redis.Open(ctx, redis.Config{Address: at}); err != nil || !s.Scenario.Asks() {
		return l, err
	}
	at.Mailbox = asking.Answers
	l.answers, err = redis.Open(ctx, redis.Config{Address: at})
	return l, err
}

func policyFor(s contest.Scenario) policy.Config {
	switch {
	case s == contest.FailsOnce:
		return policy.Config{Backoff: policy.Backoff{Formula: policy.Fixed, Base: again}}
	case s.Attempts() == 1:
		return policy.Config{MaxAttempts: 1}
	default:
		return policy.Config{}
	}
}

func (l *library) Enqueue(ctx context.Context, t contest.Task) error {
	return l.EnqueueBatch(ctx, []contest.Task{t})
}

func (l *library) Batch() int { return batch }

func (l *library) EnqueueBatch(ctx context.Context, list []contest.Task) error {
	records := make([]broker.Publication, len(list))
	for i, t := range list {
		body, err := json.Marshal(t)
		if err != nil {
			return err
		}
		records[i] = broker.Publication{Channel: Name, Value: body}
	}
	return errors.Join(l.producer.Publish(ctx, records)()...)
}

func (l *library) Start(ctx context.Context, handle contest.Handler) (func() error, error) {
	source, err := broker.New(broker.Config{Driver: l.records, Letters: broker.DefaultLetters})
	if err != nil {
		return nil, err
	}
	rules, err := policy.New(l.rules)
	if err != nil {
		return nil, err
	}
	w, err := worker.New(worker.Config{
		Source: source, Policy: rules, Concurrency: concurrency, Prefetch: prefetch,
		Logger: slog.New(slog.DiscardHandler), // as the others have
		Handler: nixie.HandlerFunc(func(_ context.Context, d *nixie.Delivery) error {
			t, err := contest.Decode(d.Body)
			if err != nil {
				return err
			}
			return handle.Handle(t)
		}),
		Observer: &nixie.Observer{
			Received: func(_ string, list []*nixie.Delivery) { l.inHand.Add(int64(len(list))) },
			Settled:  l.count,
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

// count counts outcomes that are in the server.
func (l *library) count(_ string, list []nixie.Settlement, errs []error) {
	for _, err := range errs {
		if err == nil {
			l.settled.Add(1)
		}
	}
	l.inHand.Add(-int64(len(list)))
}

// Left asks the server only when the worker has no message.
func (l *library) Left(ctx context.Context) (int, error) {
	if n := l.inHand.Load(); n > 0 {
		return int(n), nil
	}
	left, err := l.records.Remaining(ctx)
	if err != nil || l.answers == nil {
		return int(left.All), err
	}
	answers, err := l.answers.Remaining(ctx)
	return int(left.All + answers.All), err
}

func (l *library) Dead(ctx context.Context) (int, error) {
	left, err := l.letters.Remaining(ctx)
	return int(left.All), err
}

func (l *library) Each(ctx context.Context, yield func(contest.Task) error) error {
	return each(ctx, l.records, yield)
}

// each receives everything that waits in a mailbox.
func each(ctx context.Context, d *redis.Driver, yield func(contest.Task) error) error {
	for {
		records, err := d.Receive(ctx, broker.Want{Max: batch, Lease: time.Minute})
		if err != nil || len(records) == 0 {
			return err
		}
		for i := range records {
			t, err := contest.Decode(records[i].Value)
			if err != nil {
				return err
			}
			if err := yield(t); err != nil {
				return err
			}
		}
	}
}

// Prove implements contest.Prover. Each attempt was settled once, and the letters are of different
// tasks.
func (l *library) Prove(ctx context.Context, s contest.Scenario, n int) error {
	if got, want := l.settled.Load(), int64(n*s.Runs()); got != want {
		return fmt.Errorf("%d outcomes, not %d", got, want)
	}
	dead := map[int]bool{}
	err := each(ctx, l.letters, func(t contest.Task) error {
		dead[t.I] = true
		return nil
	})
	if err == nil && len(dead) != s.Dead(n) {
		err = fmt.Errorf("%d tasks have letters, not %d", len(dead), s.Dead(n))
	}
	return err
}

func (l *library) Close() error {
	ctx := context.Background()
	l.producer.Close()
	err := errors.Join(l.records.Close(ctx), l.letters.Close(ctx))
	if l.answers != nil {
		err = errors.Join(err, l.answers.Close(ctx))
	}
	return err
}
