// Command console measures the console over many letters and messages: the time of the server for
// each page, the bytes of a page, what those who watch cost, and what the console adds to the
// binary and to an idle nixie serve.
//
//	make bench-console
//	cd bench && go run ./console -letters 100000 -stores sqlite
//
// It ends with one line for each target, and with exit status 1 if one is short.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// job has the flags of a run and what it found.
type job struct {
	letters, messages int
	groups, rounds    int
	stores            string
	folder            string // of this run, in dir
	dir               string
	length            time.Duration
	targets           []target
}

// target is a bound, and what was measured against it.
type target struct {
	name        string
	value, most float64
	unit, about string
}

func (t target) String() string {
	word := "ok"
	if t.value > t.most {
		word = "short"
	}
	return fmt.Sprintf("target %s %.1f %s want at most %.0f %s: %s", t.name, t.value, t.unit, t.most, word, t.about)
}

func main() {
	j := &job{}
	flag.IntVar(&j.letters, "letters", 1_000_000, "in the store")
	flag.IntVar(&j.messages, "messages", 1_000_000, "in the store, next to those of letters; most have succeeded")
	flag.IntVar(&j.groups, "groups", 1000, "causes of the letters")
	flag.IntVar(&j.rounds, "rounds", 40, "how often each page is asked for")
	flag.StringVar(&j.stores, "stores", "sqlite,postgres", "which stores; a server of PostgreSQL is started")
	flag.StringVar(&j.dir, "dir", os.TempDir(), "folder for the files; what is made there is removed")
	flag.DurationVar(&j.length, "time", 30*time.Second, "how long those who watch are measured")
	report := flag.Bool("report", false, "exit with 0 also when a target is short")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := j.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "console:", err)
		os.Exit(1)
	}
	short := 0
	for _, t := range j.targets {
		fmt.Println(t)
		if t.value > t.most {
			short++
		}
	}
	if short > 0 && !*report {
		os.Exit(1)
	}
}

// run measures each store, then the binary.
func (j *job) run(ctx context.Context) (err error) {
	if j.folder, err = os.MkdirTemp(j.dir, "nixie-console-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(j.folder)) }()
	for _, kind := range strings.Split(j.stores, ",") {
		switch kind {
		case "sqlite":
			err = j.store(ctx, kind, "sqlite://"+j.file(), func(context.Context, string) error { return nil })
		case "postgres":
			err = j.onServer(ctx)
		default:
			err = fmt.Errorf("-stores: %q: give sqlite or postgres", kind)
		}
		if err != nil {
			return err
		}
	}
	return j.program(ctx)
}

// file is the store that nixie serve is measured with.
func (j *job) file() string { return filepath.Join(j.folder, "console.db") }

// onServer measures on a server that it starts.
func (j *job) onServer(ctx context.Context) error {
	server, err := testservers.MakePostgres(ctx, j.dir, "shared_buffers=1GB", "max_wal_size=4GB")
	if err != nil {
		return err
	}
	return errors.Join(j.store(ctx, "postgres", server.URL, vacuum), server.Stop())
}

// vacuum does what the server would do by itself in the minutes after a lot was written, while the
// first pages are asked for.
func vacuum(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "vacuum analyze")
	return errors.Join(err, conn.Close(ctx))
}

// store fills a store, lets it settle, and measures the console over it.
func (j *job) store(ctx context.Context, kind, url string, settle func(ctx context.Context, url string) error) error {
	st, err := app.OpenStore(url, app.Options{})
	if err != nil {
		return err
	}
	began := time.Now()
	err = j.fill(ctx, st)
	fmt.Printf("%s: %d letters of %d groups in %s\n", kind, j.letters, j.groups, time.Since(began).Round(time.Second))
	if err == nil {
		err = settle(ctx, url)
	}
	if err == nil {
		err = j.measure(ctx, kind, st)
	}
	return errors.Join(err, st.Close())
}
