// Command idle measures the cost of workers that wait for messages, for 1, 10 and 100 queues. It
// counts statements and transaction IDs of a PostgreSQL server that it starts, and the processor
// time of the server and of this process. It also measures the processor time with SQLite, and a
// group of 100 loops, which has targets.
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
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/internal/proof/testservers"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/worker"
)

// options are the flags of a run.
type options struct {
	folder         string
	queues         []int
	settle, length time.Duration
	reportOnly     bool
}

func main() {
	o := options{queues: []int{1, 10, 100}}
	flag.StringVar(&o.folder, "dir", os.TempDir(), "folder for the files; what is made there is removed")
	flag.DurationVar(&o.settle, "settle", 45*time.Second,
		"how long workers wait before the measurement; their heartbeats become rare after 30 s to 40 s")
	flag.DurationVar(&o.length, "time", 20*time.Second, "how long is measured")
	flag.BoolVar(&o.reportOnly, "report", false, "exit with 0 also when a target is short")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// cost is the cost of the workers in a second.
type cost struct{ statements, ids, client, server float64 }

// run measures both stores and prints a line for each number of queues.
func run(ctx context.Context, o options, out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "store\tqueues\tstatements/s\ttransaction IDs/s\tclient % of a processor\tserver %\t")
	for _, n := range o.queues {
		c, err := o.inFile(ctx, n)
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "SQLite\t%d\t\t\t%.2f\t\t\n", n, c.client)
	}
	for _, n := range o.queues {
		c, err := o.onServer(ctx, n)
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "PostgreSQL\t%d\t%.1f\t%.2f\t%.2f\t%.2f\t\n", n, c.statements, c.ids, c.client, c.server)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return o.groups(ctx, out)
}

var errShort = errors.New("a target is short")

// groups measures groups of loops with both stores, and prints their targets.
func (o *options) groups(ctx context.Context, out io.Writer) error {
	short := false
	measure := func(on string) func(store.Store) error {
		return func(st store.Store) error {
			targets, err := o.inGroup(ctx, st)
			for _, t := range targets {
				short = !t.print(out, on) || short
			}
			return err
		}
	}
	if err := o.withFile(measure("sqlite")); err != nil {
		return err
	}
	if err := o.withServer(ctx, func(st store.Store, _ *pgx.Conn) error { return measure("postgres")(st) }); err != nil {
		return err
	}
	if short && !o.reportOnly {
		return errShort
	}
	return nil
}

// inFile measures workers of a store in a file.
func (o *options) inFile(ctx context.Context, n int) (c cost, err error) {
	err = o.withFile(func(st store.Store) error {
		return waiting(ctx, st, n, func() (err error) {
			c, err = o.watch(ctx, 0, nil)
			return err
		})
	})
	return c, err
}

// withFile opens a store in a file for do.
func (o *options) withFile(do func(store.Store) error) (err error) {
	folder, err := os.MkdirTemp(o.folder, "nixie-idle-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	st, err := sqlite.Open(filepath.Join(folder, "nixie.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	return errors.Join(do(st), st.Close())
}

// onServer measures workers of a store on a server.
func (o *options) onServer(ctx context.Context, n int) (c cost, err error) {
	err = o.withServer(ctx, func(st store.Store, admin *pgx.Conn) error {
		if _, err := admin.Exec(ctx, "create extension pg_stat_statements"); err != nil {
			return err
		}
		return waiting(ctx, st, n, func() (err error) {
			c, err = o.watch(ctx, contest.ParentOf(admin.PgConn().PID()), admin)
			return err
		})
	})
	return c, err
}

// withServer opens a store for do, on a server of its own.
func (o *options) withServer(ctx context.Context, do func(store.Store, *pgx.Conn) error) (err error) {
	own, err := testservers.MakePostgres(ctx, o.folder, "shared_preload_libraries=pg_stat_statements")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.Stop()) }()
	admin, err := pgx.Connect(ctx, own.URL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, admin.Close(context.WithoutCancel(ctx))) }()
	st, err := postgres.Open(ctx, own.URL, postgres.Options{})
	if err != nil {
		return err
	}
	return errors.Join(do(st, admin), st.Close())
}

// waiting runs a worker for each of n queues until do returns. Each has had a message.
func waiting(ctx context.Context, st store.Store, n int, do func() error) error {
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	came := make(chan struct{}, n)
	for i := range n {
		queue := fmt.Sprintf("queue-%03d", i)
		if _, err := st.Enqueue(ctx, nixie.Message{Queue: queue}); err != nil {
			return err
		}
		w, err := worker.New(worker.Config{Source: store.NewSource(st, queue),
			Handler: nixie.HandlerFunc(func(context.Context, *nixie.Delivery) error {
				came <- struct{}{}
				return nil
			})})
		if err != nil {
			return err
		}
		all.Go(func() { _ = w.Run(ctx) })
	}
	for range n {
		select {
		case <-came:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return do()
}

// watch measures after the workers have settled.
func (o *options) watch(ctx context.Context, postmaster int, admin *pgx.Conn) (c cost, err error) {
	if err := sleep(ctx, o.settle); err != nil {
		return c, err
	}
	statements, ids, err := counts(ctx, admin)
	if err != nil {
		return c, err
	}
	client, server := contest.ProcessorTime(), contest.ServerTime(postmaster)
	if err := sleep(ctx, o.length); err != nil {
		return c, err
	}
	client, server = contest.ProcessorTime()-client, contest.ServerTime(postmaster)-server
	statementsAfter, idsAfter, err := counts(ctx, admin)
	seconds := o.length.Seconds()
	return cost{
		statements: float64(statementsAfter-statements) / seconds, ids: float64(idsAfter-ids) / seconds,
		client: 100 * client.Seconds() / seconds, server: 100 * server.Seconds() / seconds,
	}, err
}

// counts returns the number of statements of others, and the next transaction ID.
func counts(ctx context.Context, admin *pgx.Conn) (statements, ids int64, err error) {
	if admin == nil {
		return 0, 0, nil
	}
	err = admin.QueryRow(ctx,
		`select coalesce(sum(calls) filter (where query not like '%pg_stat_statements%'), 0)::bigint,
		pg_snapshot_xmax(pg_current_snapshot())::text::bigint from pg_stat_statements`).Scan(&statements, &ids)
	return statements, ids, err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
