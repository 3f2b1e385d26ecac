// Command sqlenqueue measures enqueue by SQL on a PostgreSQL server that it starts: one message in
// a transaction of its own, alternately with that of the library, and eight writers with and
// without notifications. A process listens.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/internal/proof/testservers"
	"github.com/nixie-go/nixie/store/postgres"
)

// most is the target: the processor time of both sides for one message, over that of the library.
const most = 1.3

const writers = 8

// options are the flags of a run.
type options struct {
	folder           string
	rounds, messages int
	reportOnly       bool
}

func main() {
	var o options
	flag.StringVar(&o.folder, "dir", os.TempDir(), "folder for the files; what is made there is removed")
	flag.IntVar(&o.rounds, "rounds", 11, "how often each is measured; medians are printed")
	flag.IntVar(&o.messages, "messages", 2000, "messages of a round")
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

// enqueue adds one message in a transaction.
type enqueue func(ctx context.Context, tx pgx.Tx) error

// way is one way to add messages, with what each round of it took for a message.
type way struct {
	name      string
	writers   int
	enqueue   enqueue
	cpu, wall []time.Duration
}

// ways returns those that are compared, in the order of a round.
func ways(st *postgres.Store) []*way {
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
	return []*way{
		{name: "library, one writer", writers: 1, enqueue: library},
		{name: "SQL, one writer", writers: 1, enqueue: bySQL(true)},
		{name: "library, eight writers", writers: writers, enqueue: library},
		{name: "SQL, eight writers, wake => true", writers: writers, enqueue: bySQL(true)},
		{name: "SQL, eight writers, wake => false", writers: writers, enqueue: bySQL(false)},
	}
}

// run measures and prints.
func run(ctx context.Context, o options, out io.Writer) (err error) {
	own, err := testservers.MakePostgres(ctx, o.folder, "max_connections=50")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.Stop()) }()
	st, err := postgres.Open(ctx, own.URL, postgres.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	var connections []*pgx.Conn
	for range writers {
		c, err := pgx.Connect(ctx, own.URL)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.Close(context.WithoutCancel(ctx))) }()
		connections = append(connections, c)
	}
	if err := listen(ctx, own.URL); err != nil {
		return err
	}
	postmaster := contest.ParentOf(connections[0].PgConn().PID())
	list := ways(st)
	for round := range o.rounds + 1 { // the first one warms up
		for _, w := range list {
			wall, cpu := time.Now(), contest.ProcessorTime()+contest.ServerTime(postmaster)
			if err := w.add(ctx, connections[:w.writers], o.messages); err != nil {
				return err
			}
			if round > 0 {
				w.wall = append(w.wall, time.Since(wall)/time.Duration(o.messages))
				w.cpu = append(w.cpu, (contest.ProcessorTime()+contest.ServerTime(postmaster)-cpu)/time.Duration(o.messages))
			}
		}
	}
	return o.print(out, list)
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

// add adds messages, each in a transaction of its own, by some writers at once.
func (w *way) add(ctx context.Context, connections []*pgx.Conn, messages int) error {
	errs := make([]error, len(connections))
	var all sync.WaitGroup
	for i, c := range connections {
		all.Go(func() {
			for range messages / len(connections) {
				if errs[i] = pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error { return w.enqueue(ctx, tx) }); errs[i] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

var errShort = errors.New("a target is short")

func (o *options) print(out io.Writer, list []*way) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "way\tmessages/s\tprocessor µs each\t")
	for _, w := range list {
		fmt.Fprintf(table, "%s\t%.0f\t%.0f\t\n", w.name, 1/median(w.wall).Seconds(), float64(median(w.cpu).Nanoseconds())/1e3)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	word, reached := "ok", median(list[1].cpu).Seconds()/median(list[0].cpu).Seconds() // SQL, and the library
	if reached > most {
		word = "short"
	}
	fmt.Fprintf(out, "target sql-enqueue-one %.2f want at most %.2f %s\n", reached, most, word)
	if word == "short" && !o.reportOnly {
		return errShort
	}
	return nil
}

func median(list []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(list))[len(list)/2]
}
