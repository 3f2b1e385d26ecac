// Package compare measures ways to do the same on a PostgreSQL server that it starts, one after the
// other in each round. It is for programs with a target for the second way over the first.
package compare

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/internal/proof/testservers"
	"github.com/nixie-go/nixie/store/postgres"
)

// Options are the flags of a program.
type Options struct {
	Folder     string // for the files of the server
	Rounds     int    // after one that warms up
	Count      int    // what a way does in a round
	ReportOnly bool   // a target that is short is no error
}

// Way is one way to do the same.
type Way struct {
	Name   string
	Before func(context.Context) error // not measured; may be nil
	Do     func(context.Context) error

	cpu, wall []time.Duration // of each round, for one of what it does
}

// Target bounds the processor time of both sides for the second way, over that for the first.
type Target struct {
	Name string
	Most float64
}

// Main runs a program that counts things of a name, by default count of them in a round.
func Main(things string, count int, run func(context.Context, Options, io.Writer) error) {
	var o Options
	flag.StringVar(&o.Folder, "dir", os.TempDir(), "folder for the files; what is made there is removed")
	flag.IntVar(&o.Rounds, "rounds", 11, "how often each is measured; medians are printed")
	flag.IntVar(&o.Count, things, count, things+" of a round")
	flag.BoolVar(&o.ReportOnly, "report", false, "exit with 0 also when a target is short")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// OnServer runs f with a store on a server that ends with it.
func (o *Options) OnServer(ctx context.Context, f func(url string, st *postgres.Store) error) (err error) {
	own, err := testservers.MakePostgres(ctx, o.Folder, "max_connections=50")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.Stop()) }()
	st, err := postgres.Open(ctx, own.URL, postgres.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	return f(own.URL, st)
}

// Measure measures ways on a server, and prints a table of things and the target. A target that is
// short is an error.
func (o *Options) Measure(ctx context.Context, url string, out io.Writer, things string, list []*Way, target Target) error {
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	postmaster := contest.ParentOf(c.PgConn().PID())
	if err := c.Close(ctx); err != nil {
		return err
	}
	for round := range o.Rounds + 1 {
		for _, w := range list {
			cpu, wall, err := w.once(ctx, postmaster)
			if err != nil {
				return err
			}
			if round > 0 {
				w.cpu, w.wall = append(w.cpu, cpu/time.Duration(o.Count)), append(w.wall, wall/time.Duration(o.Count))
			}
		}
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "way\t%s/s\tprocessor µs each\t\n", things)
	for _, w := range list {
		fmt.Fprintf(table, "%s\t%.0f\t%.0f\t\n", w.Name, 1/median(w.wall).Seconds(), float64(median(w.cpu).Nanoseconds())/1e3)
	}
	return errors.Join(table.Flush(), o.judge(out, list, target))
}

// once returns what a round took of both sides.
func (w *Way) once(ctx context.Context, postmaster int) (cpu, wall time.Duration, err error) {
	if w.Before != nil {
		if err := w.Before(ctx); err != nil {
			return 0, 0, err
		}
	}
	began, used := time.Now(), contest.ProcessorTime()+contest.ServerTime(postmaster)
	err = w.Do(ctx)
	return contest.ProcessorTime() + contest.ServerTime(postmaster) - used, time.Since(began), err
}

var errShort = errors.New("a target is short")

// judge prints whether the target is reached.
func (o *Options) judge(out io.Writer, list []*Way, target Target) error {
	word, reached := "ok", median(list[1].cpu).Seconds()/median(list[0].cpu).Seconds()
	if reached > target.Most {
		word = "short"
	}
	fmt.Fprintf(out, "target %s %.2f want at most %.2f %s\n", target.Name, reached, target.Most, word)
	if word == "short" && !o.ReportOnly {
		return errShort
	}
	return nil
}

func median(list []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(list))[len(list)/2]
}
