// Command exchange measures settle and claim in one call on a PostgreSQL server that it starts,
// alternately with two calls: for calls of one message and of twenty, by one desk and by eight.
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
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
	"github.com/nixie-go/nixie/worker"
)

// most is the target: the processor time of both sides for one call, over that of two calls.
const most = 0.8

// Sizes of what is measured.
const (
	many  = 20 // messages of a large call
	desks = 8
)

// options are the flags of a run.
type options struct {
	folder        string
	rounds, calls int
	reportOnly    bool
}

func main() {
	var o options
	flag.StringVar(&o.folder, "dir", os.TempDir(), "folder for the files; what is made there is removed")
	flag.IntVar(&o.rounds, "rounds", 11, "how often each is measured; medians are printed")
	flag.IntVar(&o.calls, "calls", 1000, "calls of a round")
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

// way is one way to work through a queue, with what each round of it took for a call.
type way struct {
	name        string
	desks, size int
	source      func(*store.Source) nixie.Source
	cpu, wall   []time.Duration
}

// unable hides that a source can exchange.
type unable struct{ nixie.Source }

// ways returns those that are compared, in the order of a round: two calls, then one.
func ways() (list []*way) {
	for _, c := range []struct {
		name        string
		desks, size int
	}{
		{"one message", 1, 1}, {fmt.Sprintf("%d messages", many), 1, many}, {fmt.Sprintf("one message, %d desks", desks), desks, 1},
		{fmt.Sprintf("%d messages, %d desks", many, desks), desks, many},
	} {
		two := func(s *store.Source) nixie.Source { return unable{s} }
		one := func(s *store.Source) nixie.Source { return s }
		list = append(list, &way{name: "two calls, " + c.name, desks: c.desks, size: c.size, source: two},
			&way{name: "one call, " + c.name, desks: c.desks, size: c.size, source: one})
	}
	return list
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
	c, err := pgx.Connect(ctx, own.URL)
	if err != nil {
		return err
	}
	postmaster := contest.ParentOf(c.PgConn().PID())
	if err := c.Close(ctx); err != nil {
		return err
	}
	list := ways()
	for round := range o.rounds + 1 { // the first one warms up
		for _, w := range list {
			if err := fill(ctx, st, o.calls*w.size); err != nil {
				return err
			}
			wall, cpu := time.Now(), contest.ProcessorTime()+contest.ServerTime(postmaster)
			if err := w.drain(ctx, st, o.calls/w.desks); err != nil {
				return err
			}
			if round > 0 {
				w.wall = append(w.wall, time.Since(wall)/time.Duration(o.calls))
				w.cpu = append(w.cpu, (contest.ProcessorTime()+contest.ServerTime(postmaster)-cpu)/time.Duration(o.calls))
			}
		}
	}
	return o.print(out, list)
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

var errShort = errors.New("a target is short")

func (o *options) print(out io.Writer, list []*way) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "way\tcalls/s\tprocessor µs each\t")
	for _, w := range list {
		fmt.Fprintf(table, "%s\t%.0f\t%.0f\t\n", w.name, 1/median(w.wall).Seconds(), float64(median(w.cpu).Nanoseconds())/1e3)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	word, reached := "ok", median(list[1].cpu).Seconds()/median(list[0].cpu).Seconds()
	if reached > most {
		word = "short"
	}
	fmt.Fprintf(out, "target exchange-one %.2f want at most %.2f %s\n", reached, most, word)
	if word == "short" && !o.reportOnly {
		return errShort
	}
	return nil
}

func median(list []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(list))[len(list)/2]
}
