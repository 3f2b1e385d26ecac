package rabbitmq_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/brokertest"
	"github.com/nixie-go/nixie/broker/rabbitmq"
)

// fixture is a queue and one for its letters.
type fixture struct {
	*raw
	source string
	sent   *rabbitmq.Publisher

	mu     sync.Mutex
	staged []broker.Record // what drivers put on stages, from where the server takes it by itself
}

// tapped is a driver that notes what it publishes.
type tapped struct {
	*rabbitmq.Driver
	f *fixture
}

func (d tapped) Publish(ctx context.Context, list []broker.Publication) func() []error {
	answers := d.Driver.Publish(ctx, list)
	return func() []error {
		errs := answers()
		d.f.mu.Lock()
		defer d.f.mu.Unlock()
		for n, err := range errs {
			if p := list[n]; err == nil {
				d.f.staged = append(d.f.staged, broker.Record{Channel: p.Channel, Offset: -1, Key: p.Key, Value: p.Value,
					Headers: p.Headers})
			}
		}
		return errs
	}
}

func newFixture(t testing.TB) *fixture {
	r := actual(t)
	f := &fixture{raw: r, source: r.declare(nil)}
	r.declareAs(f.letters(), nil)
	var err error
	if f.sent, err = rabbitmq.Connect(r.at); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.sent.Close)
	return f
}

func (f *fixture) letters() string { return broker.ChannelName(broker.DefaultLetters, f.source) }

// Source implements [brokertest.Fixture].
func (f *fixture) Source() string { return f.source }

// Join implements [brokertest.Fixture].
func (f *fixture) Join(t testing.TB, stages ...broker.Stage) broker.Driver {
	t.Helper()
	d, err := rabbitmq.Open(context.WithoutCancel(t.Context()), rabbitmq.Config{Address: f.on(f.source), Stages: stages, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	return tapped{d, f}
}

// Crash implements [brokertest.Fixture]: the connection is cut, and the server has noticed.
func (f *fixture) Crash(t testing.TB, d broker.Driver) {
	t.Helper()
	cut := d.(tapped).Crash()
	before := f.ready(f.source)
	before += cut()
	late := time.After(crashNoticed) // another consumer may get what it had
	for noticed := false; !noticed && f.ready(f.source) < before; {
		select {
		case <-late:
			noticed = true
		default:
		}
	}
}

// crashNoticed is long enough for the server to take away what a connection had that is gone.
const crashNoticed = time.Second

// Produce implements [brokertest.Fixture].
func (f *fixture) Produce(t testing.TB, records ...broker.Publication) {
	t.Helper()
	for _, err := range f.sent.Publish(limited(t), records)() {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Records implements [brokertest.Fixture], for a queue that no consumer has emptied: it takes what
// is there and gives it back. Of a stage it returns what went there.
func (f *fixture) Records(t testing.TB, channel string) (all []broker.Record) {
	t.Helper()
	if strings.Contains(channel, ".retry.") {
		f.mu.Lock()
		defer f.mu.Unlock()
		return slices.DeleteFunc(slices.Clone(f.staged), func(r broker.Record) bool { return r.Channel != channel })
	}
	r, err := rabbitmq.Read(limited(t), f.on(channel))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		r.Close()
		f.until("all are given back", func() bool { return f.ready(channel) >= len(all) })
	}()
	for {
		some, err := r.Next(limited(t), 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(some) == 0 {
			return all
		}
		all = append(all, some...)
	}
}

func TestSuite(t *testing.T) {
	brokertest.Run(t, func(t testing.TB) brokertest.Fixture { return newFixture(t) })
}
