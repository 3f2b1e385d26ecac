package loop_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/brokertest"
	"github.com/nixie-go/nixie/broker/redis"
	"github.com/nixie-go/nixie/internal/proof/child"
	"github.com/nixie-go/nixie/internal/proof/testservers"
	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/store/postgres"
	"github.com/nixie-go/nixie/store/sqlite"
)

// server is the Redis of this package's tests.
var server testservers.Redis

func TestMain(m *testing.M) {
	if args, is := child.Main(); is {
		run := answerAsChild
		if args[0] == "group" {
			run = func(args []string) error { return groupMember(args[1], args[2]) }
		}
		os.Exit(child.Code(run(args)))
	}
	os.Exit(testservers.WithRedis(func() int {
		before := goleak.IgnoreCurrent() // what reads the output of the server
		code := m.Run()
		if err := goleak.Find(before); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return code
	}, &server))
}

// site is a queue or a channel, for mailboxes of one test.
type site struct {
	store   loop.Store    // or
	driver  broker.Driver // of the channel name
	name    string
	clock   func() time.Time
	advance func(time.Duration) // nil: its clock cannot be moved
}

// mailbox makes a mailbox with bodies and answers of text.
func (s *site) mailbox(t fataler, c loop.Config) *loop.Mailbox[string, string] {
	t.Helper()
	c.Clock, c.Logger = s.clock, slog.New(slog.DiscardHandler)
	if s.store != nil {
		return must(loop.In[string, string](s.store, s.name, c))(t)
	}
	b := broker.Config{Driver: s.driver, Queue: s.name, Letters: broker.DefaultLetters, Clock: s.clock}
	return must(loop.Over[string, string](b, c))(t)
}

// fataler is a test, or a run of a test with random input.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

func must[V any](v V, err error) func(fataler) V {
	return func(t fataler) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// onEach runs a test over everything that can be a mailbox in this process. What the test does with
// an empty site it does in play, which may be called more than once: time may be virtual there.
func onEach(t *testing.T, test func(t *testing.T, play func(do func(*site)))) {
	t.Run("memory", func(t *testing.T) {
		clock, advance := stopped()
		st := memory.New(memory.Options{Clock: clock})
		test(t, numbered(site{store: st, clock: clock, advance: advance}))
	})
	t.Run("sqlite", func(t *testing.T) {
		clock, advance := stopped()
		st := must(sqlite.Open(t.TempDir()+"/nixie.db", sqlite.Options{Clock: clock}))(t)
		defer func() { _ = st.Close() }()
		test(t, numbered(site{store: st, clock: clock, advance: advance}))
	})
	t.Run("broker", func(t *testing.T) {
		test(t, func(do func(*site)) {
			var panicked any // belongs to the goroutine of the caller, as rapid panics to go on
			synctest.Test(t, func(t *testing.T) {
				defer func() { panicked = recover() }()
				box := brokertest.NewTimed()
				do(&site{driver: box.Join(t), name: box.Source(), clock: time.Now, advance: func(d time.Duration) { <-time.After(d) }})
			})
			if panicked != nil {
				panic(panicked)
			}
		})
	})
}

// onPostgres runs a test over mailboxes in a server, on a clock of the test.
func onPostgres(t *testing.T, test func(t *testing.T, play func(do func(*site)))) {
	t.Run("postgres", func(t *testing.T) {
		own := testservers.OwnPostgres(t)
		clock, advance := stopped()
		st := must(postgres.Open(context.Background(), own.URL, postgres.Options{Clock: clock}))(t)
		defer func() { _ = st.Close() }()
		test(t, numbered(site{store: st, clock: clock, advance: advance}))
	})
}

// onRedis runs a test over mailboxes of a server, whose clock no test moves.
func onRedis(t *testing.T, test func(t *testing.T, play func(do func(*site)))) {
	t.Run("redis", func(t *testing.T) {
		server.Need(t)
		n := 0
		test(t, func(do func(*site)) {
			n++
			at := redis.Address{Servers: []string{server.Addr}, Mailbox: fmt.Sprintf("loop%d-%d", os.Getpid(), n)}
			d := must(redis.Open(context.Background(), redis.Config{Address: at}))(t)
			defer func() { _ = d.Close(context.Background()) }()
			if err := d.Create(context.Background(), broker.ChannelName(broker.DefaultLetters, at.Mailbox), nil); err != nil {
				t.Fatal(err)
			}
			do(&site{driver: d, name: at.Mailbox, clock: time.Now})
		})
	})
}

// numbered plays with the queues of one store.
func numbered(s site) func(do func(*site)) {
	n := 0
	return func(do func(*site)) {
		n++
		next := s
		next.name = fmt.Sprintf("orders-%d", n)
		do(&next)
	}
}

// stopped is a clock that the test moves.
func stopped() (clock func() time.Time, advance func(time.Duration)) {
	var passed atomic.Int64
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return func() time.Time { return begin.Add(time.Duration(passed.Load())) }, func(d time.Duration) { passed.Add(int64(d)) }
}
