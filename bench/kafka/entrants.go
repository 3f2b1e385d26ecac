package main

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	watermillkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/kafka"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/worker"
)

// rawLoop polls and commits.
func rawLoop(ctx context.Context, c *course) error {
	cl, err := client(c.Seed, kgo.ConsumerGroup(c.Topic), kgo.ConsumeTopics(c.Topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer cl.Close()
	for n := 0; n < c.N; {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		n += fetches.NumRecords()
		if err := cl.CommitUncommittedOffsets(ctx); err != nil {
			return err
		}
	}
	return nil
}

// produce measures the least cost of a letter.
func produce(ctx context.Context, c *course) error {
	cl, err := client(c.Seed)
	if err != nil {
		return err
	}
	defer cl.Close()
	return fill(ctx, cl, c)
}

var errBench = errors.New("it fails")

func dies(context.Context, *nixie.Delivery) error { return nixie.Permanent(errBench) }

func (c *course) group() kafka.Config {
	return kafka.Config{Seeds: []string{c.Seed}, Group: c.Topic, Topics: []string{c.Topic},
		Client: []kgo.Opt{kgo.ProducerBatchMaxBytes(16 << 20)}}
}

// consume is a worker on the driver.
func consume(ctx context.Context, c *course) error {
	cfg := c.group()
	handle := func(context.Context, *nixie.Delivery) error { return nil }
	rules, concurrency, ahead := policy.Config{}, 0, 0
	switch c.Name {
	case "nixie-retries":
		cfg.Stages = []broker.Stage{stage}
		rules.Backoff = policy.Backoff{Formula: policy.Fixed, Base: stage.Delay}
		handle = func(_ context.Context, d *nixie.Delivery) error {
			if d.Attempts == 1 && d.Origin.Offset%100 == 7 {
				return errBench
			}
			return nil
		}
	case "nixie-letters":
		handle, ahead = dies, nixie.MaxBatch
	case "nixie-large":
		concurrency = 8
		handle = func(ctx context.Context, _ *nixie.Delivery) error {
			select {
			case <-time.After(slow):
			case <-ctx.Done():
			}
			return nil
		}
	}
	return work(ctx, c, cfg, broker.Config{Letters: broker.DefaultLetters}, rules, concurrency, ahead, handle)
}

func work(ctx context.Context, c *course, cfg kafka.Config, to broker.Config, rules policy.Config, concurrency, ahead int,
	handle nixie.HandlerFunc) error {
	d, err := kafka.Open(cfg)
	if err != nil {
		return err
	}
	to.Driver = d
	source, err := broker.New(to)
	if err != nil {
		return err
	}
	p, err := policy.New(rules)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var ended atomic.Int64 // records of the topic itself
	w, err := worker.New(worker.Config{
		Source: source, Policy: p, Handler: handle, Prefetch: ahead, Concurrency: concurrency,
		Logger: slog.New(slog.DiscardHandler),
		Observer: &nixie.Observer{Settled: func(_ string, sts []nixie.Settlement, errs []error) {
			n := 0
			for i := range sts {
				if errs[i] == nil && (sts[i].Verb != nixie.Complete || sts[i].Delivery.Attempts == 1) {
					n++
				}
			}
			if ended.Add(int64(n)) >= int64(c.N) {
				stop()
			}
		}},
	})
	if err != nil {
		return err
	}
	if err := w.Run(ctx); err != nil {
		return err
	}
	return d.Close(context.WithoutCancel(ctx))
}

// router is the router with a poison queue of Watermill's documentation.
func router(ctx context.Context, c *course) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := watermillkafka.DefaultSaramaSubscriberConfig()
	s.Consumer.Offsets.Initial = sarama.OffsetOldest
	from, err := watermillkafka.NewSubscriber(watermillkafka.SubscriberConfig{
		Brokers: []string{c.Seed}, Unmarshaler: watermillkafka.DefaultMarshaler{}, OverwriteSaramaConfig: s, ConsumerGroup: c.Topic,
	}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	to, err := watermillkafka.NewPublisher(
		watermillkafka.PublisherConfig{Brokers: []string{c.Seed}, Marshaler: watermillkafka.DefaultMarshaler{}}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	r, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	poison, err := middleware.PoisonQueue(to, c.letters())
	if err != nil {
		return err
	}
	r.AddMiddleware(poison)
	var handled atomic.Int64
	r.AddConsumerHandler("bench", c.Topic, from, func(*message.Message) error {
		if handled.Add(1) == int64(c.N) {
			stop()
		}
		return nil
	})
	if err := r.Run(ctx); err != nil {
		return err
	}
	return errors.Join(from.Close(), to.Close())
}
