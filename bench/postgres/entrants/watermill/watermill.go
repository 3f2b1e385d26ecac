// Package watermill lets the SQL subscribers of github.com/ThreeDotsLabs/watermill-sql take part,
// on PostgreSQL. One keeps the messages and an offset; the other deletes each message.
//
// One subscriber holds the locks of a batch while its messages are handled, so more subscribers
// would only wait. Watermill retries a failed message at once, in memory. There are no dead
// letters: a message at its limit is published to another topic, as its middleware PoisonQueue
// does, and counts as one here.
package watermill

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	watermill "github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/bench/postgres/database"
)

const (
	batch  = 1000
	again  = time.Microsecond // the wait before a retry; 0 would be a second
	poll   = time.Millisecond
	work   = "work"
	poison = "poison"
)

// variant is one way to keep messages.
type variant struct {
	schema  sql.SchemaAdapter
	offsets sql.OffsetsAdapter
	left    string // a query that counts what is not handled
}

// ByOffset is the subscriber that keeps an offset.
func ByOffset() contest.Entrant {
	return entrant("offset", variant{
		schema:  sql.DefaultPostgreSQLSchema{SubscribeBatchSize: batch},
		offsets: sql.DefaultPostgreSQLOffsetsAdapter{},
		left: `select count(*) from watermill_work w where not exists (select from watermill_offsets_work o
			where (o.last_processed_transaction_id, o.offset_acked) >= (w.transaction_id, w."offset"))`,
	})
}

// ByRow is the subscriber of PostgreSQLQueueSchema.
func ByRow() contest.Entrant {
	return entrant("queue", variant{
		schema:  sql.PostgreSQLQueueSchema{SubscribeBatchSize: batch},
		offsets: sql.PostgreSQLQueueOffsetsAdapter{DeleteOnAck: true},
		left:    "select count(*) from watermill_work",
	})
}

func entrant(name string, v variant) contest.Entrant {
	return contest.Entrant{
		Name: "watermill-" + name, Kind: contest.Peer, Module: "github.com/ThreeDotsLabs/watermill-sql/v4", Streams: true,
		Settings: fmt.Sprintf("watermill-sql, one subscriber, %d messages a batch and a Publish, polls every %s, no deadline", batch, poll),
		Open:     func(ctx context.Context, s contest.Setup) (contest.Library, error) { return open(ctx, s, v) },
	}
}

type library struct {
	variant
	pool       *pgxpool.Pool
	publisher  *sql.Publisher
	subscriber *sql.Subscriber
	dies       bool // what fails may not be tried again
}

func open(ctx context.Context, s contest.Setup, v variant) (contest.Library, error) {
	pool, err := database.Open(ctx, s)
	if err != nil {
		return nil, err
	}
	l := &library{variant: v, pool: pool, dies: s.Scenario.Attempts() == 1}
	if err := l.connect(); err != nil {
		pool.Close()
		return nil, err
	}
	return l, nil
}

func (l *library) connect() (err error) {
	beginner := sql.BeginnerFromPgx(l.pool)
	if l.publisher, err = sql.NewPublisher(beginner, sql.PublisherConfig{SchemaAdapter: l.schema}, nil); err != nil {
		return err
	}
	never := time.Duration(0)
	if l.subscriber, err = sql.NewSubscriber(beginner, sql.SubscriberConfig{
		SchemaAdapter: l.schema, OffsetsAdapter: l.offsets,
		AckDeadline: &never, PollInterval: poll, ResendInterval: again,
	}, nil); err != nil {
		return err
	}
	for _, topic := range []string{work, poison} {
		if err := l.subscriber.SubscribeInitialize(topic); err != nil {
			return err
		}
	}
	return nil
}

func (l *library) Enqueue(ctx context.Context, t contest.Task) error {
	return l.EnqueueBatch(ctx, []contest.Task{t})
}

func (l *library) Batch() int { return batch }

func (l *library) EnqueueBatch(_ context.Context, list []contest.Task) error {
	messages := make([]*message.Message, len(list))
	for i, t := range list {
		body, err := json.Marshal(t)
		if err != nil {
			return err
		}
		messages[i] = message.NewMessage(watermill.NewUUID(), body)
	}
	return l.publisher.Publish(work, messages...)
}

func (l *library) Start(ctx context.Context, handle contest.Handler) (func() error, error) {
	ctx, cancel := context.WithCancel(ctx)
	source, err := l.subscriber.Subscribe(ctx, work)
	if err != nil {
		cancel()
		return nil, err
	}
	var group sync.WaitGroup
	var failed error
	group.Go(func() {
		for m := range source {
			if err := l.one(m, handle); err != nil && failed == nil {
				failed = err
				cancel()
			}
		}
	})
	return func() error {
		cancel()
		group.Wait()
		return failed
	}, nil
}

// one handles a message.
func (l *library) one(m *message.Message, handle contest.Handler) error {
	t, err := contest.Decode(m.Payload)
	if err != nil {
		return err
	}
	if handle.Handle(t) != nil {
		if !l.dies {
			m.Nack()
			return nil
		}
		if err := l.publisher.Publish(poison, m); err != nil {
			return err
		}
	}
	m.Ack()
	return nil
}

func (l *library) Left(ctx context.Context) (int, error) {
	return database.Count(ctx, l.pool, l.left)
}

func (l *library) Dead(ctx context.Context) (int, error) {
	return database.Count(ctx, l.pool, "select count(*) from watermill_poison")
}

func (l *library) Each(ctx context.Context, yield func(contest.Task) error) error {
	return database.Each(ctx, l.pool, "select payload from watermill_work", yield)
}

func (l *library) Close() error {
	l.pool.Close()
	return nil
}
