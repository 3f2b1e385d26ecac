// Package watermill lets the subscribers of github.com/ThreeDotsLabs/watermill-redisstream take
// part, in one consumer group on one stream.
//
// A subscriber reads and acknowledges one message after the other, so there are several. Watermill
// retries a failed message at once, in memory. There are no dead letters: a message at its limit is
// published to another stream, as its middleware PoisonQueue does, and counts as one here. Nothing
// removes what is acknowledged from the stream.
package watermill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	watermill "github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie/bench/contest"
)

const (
	batch       = 1000
	subscribers = 8
	work        = "work"
	poison      = "poison"
	group       = "bench"
)

// Entrant is Watermill.
func Entrant() contest.Entrant {
	return contest.Entrant{
		Name: "watermill", Kind: contest.Peer, Module: "github.com/ThreeDotsLabs/watermill-redisstream", Open: open,
		Settings: fmt.Sprintf("%d subscribers in a group, %d messages a Publish, which sends them one after the other", subscribers, batch),
	}
}

type library struct {
	client    *redis.Client
	publisher *redisstream.Publisher
	dies      bool // what fails may not be tried again
}

func open(ctx context.Context, s contest.Setup) (contest.Library, error) {
	l := &library{client: redis.NewClient(&redis.Options{Addr: s.URL}), dies: s.Scenario.Attempts() == 1}
	err := l.client.XGroupCreateMkStream(ctx, work, group, "0").Err()
	if redis.HasErrorPrefix(err, "BUSYGROUP") { // an earlier process has made it
		err = nil
	}
	if err == nil {
		l.publisher, err = redisstream.NewPublisher(redisstream.PublisherConfig{Client: l.client}, nil)
	}
	return l, err
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
	var running sync.WaitGroup
	errs := make([]error, subscribers)
	stop := func() error {
		cancel()
		running.Wait()
		return errors.Join(errs...)
	}
	for n := range subscribers {
		s, err := redisstream.NewSubscriber(redisstream.SubscriberConfig{
			Client: l.client, ConsumerGroup: group, DisableIndefiniteInitialBlock: true,
		}, nil)
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		source, err := s.Subscribe(ctx, work)
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		running.Go(func() {
			for m := range source {
				if err := l.one(m, handle); err != nil && errs[n] == nil {
					errs[n] = err
					cancel()
				}
			}
		})
	}
	return stop, nil
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
	groups, err := l.client.XInfoGroups(ctx, work).Result()
	if err != nil {
		return 0, err
	}
	return int(groups[0].Lag + groups[0].Pending), nil
}

func (l *library) Dead(ctx context.Context) (int, error) {
	n, err := l.client.XLen(ctx, poison).Result()
	return int(n), err
}

func (l *library) Each(ctx context.Context, yield func(contest.Task) error) error {
	for from := "-"; ; {
		list, err := l.client.XRangeN(ctx, work, from, "+", batch).Result()
		if err != nil || len(list) == 0 {
			return err
		}
		for _, m := range list {
			t, err := contest.Decode([]byte(m.Values["payload"].(string)))
			if err != nil {
				return err
			}
			if err := yield(t); err != nil {
				return err
			}
			from = "(" + m.ID
		}
	}
}

func (l *library) Close() error { return l.client.Close() }
