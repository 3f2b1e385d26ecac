// Package local, for programs that begin, is a queue in a SQLite file and the worker on it, in one
// value:
//
//	package main
//
//	import (
//		"context"
//		"errors"
//		"log"
//		"os"
//
//		"github.com/nixie-go/nixie"
//		"github.com/nixie-go/nixie/local"
//	)
//
//	var hello = nixie.NewType[string]("hello")
//
//	func greet(_ context.Context, job *nixie.Job[string]) error {
//		return nixie.Permanent(os.WriteFile(job.Body, []byte("hello\n"), 0o600))
//	}
//
//	func main() {
//		ctx := context.Background()
//		queue, err := local.Open("hello.db", hello.Handle(greet))
//		if err != nil {
//			log.Fatal(err)
//		}
//		_, err = hello.Enqueue(ctx, queue, "hello.txt")
//		if err = errors.Join(err, queue.Drain(ctx), queue.Close()); err != nil {
//			log.Fatal(err)
//		}
//	}
//
// A program that wants several queues, another store or an option of the worker takes packages
// store/sqlite, store and worker instead. It finds the messages of this one in [DefaultQueue].
package local

import (
	"cmp"
	"context"
	"errors"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/worker"
)

// DefaultQueue is the queue of messages that name none, and the one that is worked on.
const DefaultQueue = "main"

// Queue is a queue in a file.
type Queue struct {
	Store *sqlite.Store // for package office, and for transactions

	work worker.Config
}

// Open opens a queue in a file, and makes the file if there is none. The routes handle its
// messages. Any number of processes may open one file.
func Open(file string, routes ...nixie.Route) (*Queue, error) {
	handler, err := nixie.CheckedRoutes(routes...)
	if err != nil {
		return nil, err
	}
	st, err := sqlite.Open(file, sqlite.Options{})
	if err != nil {
		return nil, err
	}
	q := &Queue{st, worker.Config{Source: store.NewSource(st, DefaultQueue), Handler: handler}}
	if _, err := worker.New(q.work); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return q, nil
}

// Enqueue implements [nixie.Enqueuer]. A message without a queue goes to [DefaultQueue].
func (q *Queue) Enqueue(ctx context.Context, messages ...nixie.Message) ([]nixie.Receipt, error) {
	return nixie.Through(q.Store, func(_ context.Context, m *nixie.Message) error {
		m.Queue = cmp.Or(m.Queue, DefaultQueue)
		return nil
	}).Enqueue(ctx, messages...)
}

// Run works until ctx ends, as at a signal, and no message is in hand.
func (q *Queue) Run(ctx context.Context) error { return q.run(ctx, worker.Until{}) }

// Drain works until nothing can run now. What waits for a retry, or for its time, stays.
func (q *Queue) Drain(ctx context.Context) error { return q.run(ctx, worker.Until{Idle: true}) }

func (q *Queue) run(ctx context.Context, until worker.Until) error {
	work := q.work
	work.Until = until
	w, err := worker.New(work)
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// Close closes the file, once Run and Drain have returned.
func (q *Queue) Close() error { return q.Store.Close() }
