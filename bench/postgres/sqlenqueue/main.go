// Command sqlenqueue measures enqueue by SQL on a PostgreSQL server that it starts: one message in
// a transaction of its own, alternately with that of the library, and eight writers with and
// without notifications. A process listens.
package main

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/bench/postgres/compare"
	"github.com/nixie-go/nixie/store/postgres"
)

// target is that of one message by SQL, over one of the library.
var target = compare.Target{Name: "sql-enqueue-one", Most: 1.3}

const (
	messages = "messages"
	writers  = 8
)

func main() { compare.Main(messages, 2000, run) }

// enqueue adds one message in a transaction.
type enqueue func(ctx context.Context, tx pgx.Tx) error

// ways returns those that are compared, in the order of a round.
func ways(st *postgres.Store, connections []*pgx.Conn, count int) []*compare.Way {
	body := []byte("a message of some length, as most are: about one hundred bytes, which are the same for all of them")
	library := func(ctx context.Context, tx pgx.Tx) error {
		_, err := st.Tx(tx).Enqueue(ctx, nixie.Message{Queue: "bench", Body: body})
		return err
	}
	bySQL := func(wake bool) enqueue {
		return func(ctx context.Context, tx pgx.Tx) error {
			var id [16]byte
			return tx.QueryRow(ctx, "select id from nixie.enqueue($1, $2::bytea, wake => $3)", "bench", body, wake).Scan(&id)
		}
	}
	way := func(name string, writers int, add enqueue) *compare.Way {
		return &compare.Way{Name: name, Do: func(ctx context.Context) error { return addAll(ctx, connections[:writers], count, add) }}
	}
	return []*compare.Way{
		way("library, one writer", 1, library),
		way("SQL, one writer", 1, bySQL(true)),
		way("library, eight writers", writers, library),
		way("SQL, eight writers, wake => true", writers, bySQL(true)),
		way("SQL, eight writers, wake => false", writers, bySQL(false)),
	}
}

// run measures and prints.
func run(ctx context.Context, o compare.Options, out io.Writer) error {
	return o.OnServer(ctx, func(url string, st *postgres.Store) error {
		var connections []*pgx.Conn
		for range writers {
			c, err := pgx.Connect(ctx, url)
			if err != nil {
				return err
			}
			defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
			connections = append(connections, c)
		}
		if err := listen(ctx, url); err != nil {
			return err
		}
		return o.Measure(ctx, url, out, messages, ways(st, connections, o.Count), target)
	})
}

// listen opens a process that listens, as far as the server sees.
func listen(ctx context.Context, url string) error {
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, "listen nixie; select pg_advisory_lock_shared(hashtext('nixie listen nixie'), 0)")
	if err != nil {
		return err
	}
	go func() { // until the server is stopped
		for err == nil {
			_, err = c.WaitForNotification(ctx)
		}
	}()
	return nil
}

// addAll adds messages, each in a transaction of its own, by some writers at once.
func addAll(ctx context.Context, connections []*pgx.Conn, count int, add enqueue) error {
	errs := make([]error, len(connections))
	var all sync.WaitGroup
	for i, c := range connections {
		all.Go(func() {
			for range count / len(connections) {
				if errs[i] = pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error { return add(ctx, tx) }); errs[i] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
