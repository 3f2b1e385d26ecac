// Command orders shows the dead letter channel: six orders go into a queue, and some of them fail.
//
//	go run ./examples/orders
//	go run ./examples/orders -listen 127.0.0.1:8080
//
// With -listen it shows its office in a browser then, until it is interrupted.
//
// A malformed order becomes a dead letter with its raw bytes. The worker retries an order whose
// depot is busy until it succeeds, and charges it once. An order whose depot is closed uses up its
// attempts. A wrong order is not retried. Then the depot opens: the operator redrives its letter,
// and discards the letters that cannot be fixed, so that the office is empty.
//
// The file handle.go has the business, office.go what its operator does, ops.go the pages for
// operators, and this one the rest.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/worker"
)

func main() {
	listen := flag.String("listen", "", "address to show the office at, below /ops/, when all is done")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *listen); err != nil {
		fmt.Fprintln(os.Stderr, "orders:", err)
		os.Exit(1) //nolint:gocritic // the signals end with the program
	}
}

// run runs the whole example, in a store that it removes at the end.
func run(ctx context.Context, out io.Writer, listen string) (err error) {
	folder, err := os.MkdirTemp("", "orders")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	st, err := sqlite.Open(filepath.Join(folder, "orders.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	clerk, err := office.New(office.Config{Store: st, Actor: "clerk"})
	if err != nil {
		return err
	}

	shop := newShop()
	fmt.Fprintln(out, "Six orders come in, two of them twice, one cut short.")
	if err := produce(ctx, st); err != nil {
		return err
	}
	if err := handle(ctx, st, shop, 6); err != nil {
		return err
	}
	if err := tellOrders(ctx, out, clerk, nixie.Filter{}); err != nil {
		return err
	}
	if err := tellLetters(ctx, out, clerk); err != nil {
		return err
	}

	fmt.Fprintln(out, "\nThe depot in the south opens: what waited for it is redriven.")
	shop.open("south")
	waited := nixie.Filter{Reasons: []nixie.Reason{nixie.ReasonDependency}}
	redriven, err := redrive(ctx, out, clerk, waited, "the depot is open")
	if err != nil {
		return err
	}
	if err := handle(ctx, st, shop, redriven); err != nil {
		return err
	}
	if err := tellOrders(ctx, out, clerk, nixie.Filter{Keys: []string{"order-3"}}); err != nil {
		return err
	}

	fmt.Fprintln(out, "\nThe other two stay wrong: they are given up.")
	if err := giveUp(ctx, clerk, "the customer orders again"); err != nil {
		return err
	}
	if err := tellLetters(ctx, out, clerk); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nCharged: %s\n", shop.charges())
	if listen == "" {
		return nil
	}
	return serve(ctx, out, clerk, listen)
}

// produce puts the orders into the queue. The dedupe key makes repeating it
// harmless: an order that is on its way already is not added again.
func produce(ctx context.Context, to nixie.Enqueuer) error {
	orders := []Order{
		{ID: "order-1", Amount: 12, Depot: "north"},
		{ID: "order-2", Amount: 30, Depot: "east"},  // busy twice
		{ID: "order-3", Amount: 7, Depot: "south"},  // closed
		{ID: "order-4", Amount: -5, Depot: "north"}, // wrong
		{ID: "order-5", Amount: 44, Depot: "north"},
		{ID: "order-1", Amount: 12, Depot: "north"}, // again
		{ID: "order-2", Amount: 30, Depot: "east"},  // again
	}
	for _, o := range orders {
		if _, err := placed.Enqueue(ctx, to, o, nixie.Key(o.ID), nixie.DedupeKey(o.ID)); err != nil {
			return err
		}
	}
	// Another system writes into the same queue, and cuts its message short.
	_, err := to.Enqueue(ctx, nixie.Message{
		Queue: queue, Type: placed.Name(), Key: "order-6", Body: []byte(`{"id": "order-6", "amount": 9`),
	})
	return err
}

// handle works until that many orders have ended. A server gives Run a context that ends at a
// signal, and needs no observer.
func handle(ctx context.Context, st store.Store, shop *shop, orders int64) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var ended atomic.Int64
	observer := &nixie.Observer{Settled: func(_ string, settled []nixie.Settlement, errs []error) {
		for i, s := range settled {
			over := errs[i] == nil && s.Verb != nixie.Retry && s.Verb != nixie.Release
			if over && ended.Add(1) == orders {
				stop()
			}
		}
	}}
	// The retries are for busy depots. The delays are short for this example; without a Backoff
	// they are 1 s, 2 s, 4 s … with jitter.
	p, err := policy.New(policy.Config{
		MaxAttempts: 3,
		Backoff:     policy.Backoff{Formula: policy.Exponential, Base: 20 * time.Millisecond},
	})
	if err != nil {
		return err
	}
	w, err := worker.New(worker.Config{
		Source:   store.NewSource(st, queue),
		Handler:  nixie.Routes(placed.Handle(shop.handle)),
		Policy:   p,
		Observer: observer,
	})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}
