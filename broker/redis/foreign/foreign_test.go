package foreign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/check"
	"github.com/nixie-go/nixie/internal/proof/testservers"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// server is the Redis of this package's tests. Each test has a database of it.
var server testservers.Redis

// programs is the folder of programs that tests build.
var programs string

func TestMain(m *testing.M) {
	os.Exit(testservers.WithRedis(func() int {
		folder, err := os.MkdirTemp("", "nixie-jobqueues-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(folder) //nolint:errcheck // it is the temporary folder of the machine
		programs = folder
		return m.Run()
	}, &server))
}

// databases are those that a server has at least, without the first one.
var databases = newDatabases()

func newDatabases() chan int {
	all := make(chan int, 15)
	for n := range cap(all) {
		all <- n + 1
	}
	return all
}

// database returns a client of an empty database, and its URL. Another test may have it afterwards.
func database(t testing.TB) (*redis.Client, string) {
	t.Helper()
	server.Need(t)
	n := <-databases
	c := redis.NewClient(&redis.Options{Addr: server.Addr, DB: n, MaxRetries: -1})
	t.Cleanup(func() {
		_ = c.Close()
		databases <- n
	})
	if err := c.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	return c, "redis://" + server.Addr + "/" + strconv.Itoa(n)
}

// another returns one more client of the database of a client: readers and publishers close theirs.
func another(c *redis.Client) *redis.Client { return redis.NewClient(c.Options()) }

// office is a store and what it took in.
type office struct {
	store.Store
	t testing.TB
}

func newOffice(t testing.TB) *office {
	st := memory.New(memory.Options{})
	t.Cleanup(func() { _ = st.Close() })
	return &office{st, t}
}

// adopt takes in the dead jobs of a job queue. It returns how many the office had not, and has all
// letters checked as an office does.
func (o *office) adopt(c *redis.Client, cfg Config) int {
	o.t.Helper()
	added := 0
	for _, r := range readAll(o.t, c, cfg) {
		l := broker.Adopted(cfg.Format, &r, "")
		if err := check.Letter(&l); err != nil {
			o.t.Errorf("%s: %v", r.Key, err)
		}
		receipts, errs := o.Adopt(o.t.Context(), []nixie.Letter{l}, "ann", "adopted")
		if errs[0] != nil {
			o.t.Errorf("%s: %v", r.Key, errs[0])
		} else if !receipts[0].Duplicate {
			added++
		}
	}
	return added
}

// readAll reads all dead jobs, in the order of their IDs.
func readAll(t testing.TB, c *redis.Client, cfg Config) (all []broker.Record) {
	t.Helper()
	r, err := Open(t.Context(), another(c), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		some, err := r.Next(t.Context(), 7)
		if err != nil {
			t.Fatal(err)
		}
		if len(some) == 0 {
			break
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b broker.Record) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return all
}

// letters returns all letters with their bodies and history.
func (o *office) letters() []nixie.Letter {
	o.t.Helper()
	all, _, err := o.Letters(o.t.Context(), nixie.Filter{}, store.Page{Limit: 1000, Bodies: true, Whole: true})
	if err != nil {
		o.t.Fatal(err)
	}
	return all
}

// redrive sends letters back, as dlq redrive --to does, and returns the errors.
func (o *office) redrive(c *redis.Client, cfg Config, change func(*redrive.Destination), letters ...nixie.Letter) []error {
	o.t.Helper()
	p, err := NewPublisher(another(c), cfg)
	if err != nil {
		o.t.Fatal(err)
	}
	defer p.Close()
	return o.through(p, change, letters...)
}

// through sends letters back by a publisher.
func (o *office) through(p *Publisher, change func(*redrive.Destination), letters ...nixie.Letter) []error {
	o.t.Helper()
	to := redrive.Destination{To: p}
	if change != nil {
		change(&to)
	}
	send, err := to.Letters()
	if err != nil {
		o.t.Fatal(err)
	}
	return send(o.t.Context(), letters)
}

// mustRedrive sends letters back and fails if one does not go.
func (o *office) mustRedrive(c *redis.Client, cfg Config, letters ...nixie.Letter) {
	o.t.Helper()
	if err := errors.Join(o.redrive(c, cfg, nil, letters...)...); err != nil {
		o.t.Fatal(err)
	}
}

// until waits for a condition of the server.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	try := time.NewTicker(20 * time.Millisecond)
	defer try.Stop()
	for !is() {
		select {
		case <-try.C:
		case <-ctx.Done():
			t.Fatalf("%s did not happen in time", what)
		}
	}
}
