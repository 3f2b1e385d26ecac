// Command exchange measures settle and claim in one call on a PostgreSQL server that it starts,
// alternately with two calls: for calls of one message and of twenty, by one desk and by eight.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/bench/postgres/compare"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
	"github.com/nixie-go/nixie/worker"
)

// target is that of one call for one message, over two.
var target = compare.Target{Name: "exchange-one", Most: 0.8}

// Sizes of what is measured.
const (
	many  = 20 // messages of a large call
	desks = 8
)

const calls = "calls"

func main() { compare.Main(calls, 1000, run) }

// way is one way to work through a queue.
type way struct {
	desks, size int
	source      func(*store.Source) nixie.Source
}

// unable hides that a source can exchange.
type unable struct{ nixie.Source }

// ways returns those that are compared, in the order of a round: two calls, then one.
func ways(st *postgres.Store, count int) (list []*compare.Way) {
	for _, c := range []struct {
		name        string
		desks, size int
	}{
		{"one message", 1, 1}, {fmt.Sprintf("%d messages", many), 1, many}, {fmt.Sprintf("one message, %d desks", desks), desks, 1},
		{fmt.Sprintf("%d messages, %d desks", many, desks), desks, many},
	} {
		add := func(name string, source func(*store.Source) nixie.Source) {
			w := way{c.desks, c.size, source}
			list = append(list, &compare.Way{
				Name:   name + ", " + c.name,
				Before: func(ctx context.Context) error { return fill(ctx, st, count*c.size) },
				Do:     func(ctx context.Context) error { return w.drain(ctx, st, count/c.desks) },
			})
		}
		add("two calls", func(s *store.Source) nixie.Source { return unable{s} })
		add("one call", func(s *store.Source) nixie.Source { return s })
	}
	return list
}

// run measures and prints.
func run(ctx context.Context, o compare.Options, out io.Writer) error {
	return o.OnServer(ctx, func(url string, st *postgres.Store) error {
		return o.Measure(ctx, url, out, calls, ways(st, o.Count), target)
	})
}

// queue is the only one.
const queue = "bench"

// fill adds messages.
func fill(ctx context.Context, st *postgres.Store, messages int) error {
	body := []byte("a message of some length, as most are: about one hundred bytes, which are the same for all of them")
	for part := range slices.Chunk(slices.Repeat([]nixie.Message{{Queue: queue, Body: body}}, messages), nixie.MaxBatch) {
		if _, err := st.Enqueue(ctx, part...); err != nil {
			return err
		}
	}
	return nil
}

// drain works through the queue, each desk by as many calls.
func (w *way) drain(ctx context.Context, st *postgres.Store, calls int) error {
	errs := make([]error, w.desks)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = w.work(ctx, st, calls) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// work succeeds with as many messages as its calls settle. The last call only settles, so that no
// desk takes messages of another.
func (w *way) work(ctx context.Context, st *postgres.Store, calls int) error {
	p, err := policy.New(policy.Config{})
	if err != nil {
		return err
	}
	desk, err := worker.NewDesk(worker.Config{Source: w.source(store.NewSource(st, queue)), Policy: p})
	if err != nil {
		return err
	}
	want := nixie.Want{Max: w.size}
	ds, err := desk.Receive(ctx, want)
	for left := calls - 1; ; left-- {
		if err != nil || len(ds) != w.size {
			return errors.Join(err, fmt.Errorf("%d messages came, want %d", len(ds), w.size))
		}
		if left == 0 {
			break
		}
		outcomes := make([]worker.Outcome, len(ds))
		for i, d := range ds {
			outcomes[i] = worker.Outcome{Delivery: d, StartedAt: time.Now()}
		}
		var settled []worker.Settled
		if settled, ds, err = desk.Exchange(ctx, outcomes, want); err != nil {
			return err
		}
		for i := range settled {
			if settled[i].Err != nil {
				return settled[i].Err
			}
		}
	}
	for _, d := range ds {
		if _, err := desk.Done(ctx, d, nil, time.Now()); err != nil {
			return err
		}
	}
	return nil
}
