package redis

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/brokertest"
	"github.com/nixie-go/nixie/internal/proof/child"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// server is the Redis of this package's tests.
var server testservers.Redis

func TestMain(m *testing.M) {
	if args, is := child.Main(); is {
		os.Exit(child.Code(consumeAsChild(args)))
	}
	os.Exit(testservers.WithRedis(m.Run, &server))
}

// fixture is a mailbox and one for its letters.
type fixture struct {
	at     Address
	client redis.UniversalClient
	sent   *Publisher
}

// fixtures numbers the fixtures, so that their names differ.
var fixtures atomic.Int64

func actual(t testing.TB) *fixture {
	t.Helper()
	server.Need(t)
	return newFixture(t, Address{Servers: []string{server.Addr}})
}

func newFixture(t testing.TB, at Address) *fixture {
	t.Helper()
	at.Mailbox, at.ClientName = fmt.Sprintf("t%d-%d", os.Getpid(), fixtures.Add(1)), "test"
	client, err := at.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	f := &fixture{at: at, client: client, sent: &Publisher{client: client}}
	for _, name := range []string{at.Mailbox, f.letters()} {
		m, err := newMailbox(client, name)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.create(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func (f *fixture) letters() string { return broker.ChannelName(broker.DefaultLetters, f.at.Mailbox) }

func (f *fixture) mailbox() *mailbox {
	return &mailbox{client: f.client, name: f.at.Mailbox, keys: keysOf(f.at.Mailbox)}
}

// Source implements [brokertest.Fixture].
func (f *fixture) Source() string { return f.at.Mailbox }

// Join implements [brokertest.Fixture].
func (f *fixture) Join(t testing.TB, _ ...broker.Stage) broker.Driver {
	t.Helper()
	return f.open(t, Config{})
}

func (f *fixture) open(t testing.TB, c Config) *Driver {
	t.Helper()
	c.Address = f.at
	c.ClientName = fmt.Sprintf("%s-%d", f.at.Mailbox, fixtures.Add(1))
	d, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Publisher.Close)
	return d
}

// Crash implements [brokertest.Fixture]: the connections are cut, and the leases end at once.
func (f *fixture) Crash(t testing.TB, d broker.Driver) {
	t.Helper()
	gone := d.(*Driver)
	gone.closed.Do(func() {
		close(gone.closing)
		gone.Publisher.Close()
	})
	f.disconnected(t, clientName(gone))
	f.endLeases(t, gone.holder)
}

// clientName returns the name of a driver's connections.
func clientName(d *Driver) string {
	if c, ok := d.client.(*redis.ClusterClient); ok {
		return c.Options().ClientName
	}
	return d.client.(*redis.Client).Options().ClientName
}

// disconnected waits until the server has no connection of a client any more, and so has run its
// last command.
func (f *fixture) disconnected(t testing.TB, name string) {
	t.Helper()
	ctx := limited(t)
	for list, err := f.client.ClientList(ctx).Result(); err != nil || strings.Contains(list, " name="+name+" "); {
		if ctx.Err() != nil {
			t.Fatalf("the server has connections of %s: %s, %v", name, list, err)
		}
		sleep(ctx, time.Millisecond)
		list, err = f.client.ClientList(ctx).Result()
	}
}

// limited returns a context that ends after testTimeout.
func limited(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// Produce implements [brokertest.Fixture].
func (f *fixture) Produce(t testing.TB, records ...broker.Publication) {
	t.Helper()
	for _, err := range f.sent.Publish(t.Context(), records)() {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Records implements [brokertest.Fixture], for a mailbox that no receiver has emptied.
func (f *fixture) Records(t testing.TB, channel string) []broker.Record {
	t.Helper()
	m := &mailbox{client: f.client, name: channel, keys: keysOf(channel)}
	all, err := f.client.HGetAll(context.WithoutCancel(t.Context()), m.keys[2]).Result()
	if err != nil {
		t.Fatal(err)
	}
	out := make([]broker.Record, 0, len(all))
	for n := 1; len(out) < len(all) && n < 1<<20; n++ {
		if body, ok := all[strconv.Itoa(n)]; ok {
			out = append(out, broker.Record{})
			m.record(strconv.Itoa(n), body, "", &out[len(out)-1])
		}
	}
	return out
}

func TestSuite(t *testing.T) {
	brokertest.Run(t, func(t testing.TB) brokertest.Fixture { return actual(t) })
}
