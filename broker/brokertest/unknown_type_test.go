package brokertest_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/brokertest"
	"github.com/nixie-go/nixie/worker"
)

// TestUnknownTypesWait leaves records of a type without a route to a worker that may come. They die
// after 15 minutes, with the reason unknown-type, and no earlier.
func TestUnknownTypesWait(t *testing.T) {
	stages := []broker.Stage{{Channel: "{source}.retry.5s", Delay: 5 * time.Second}, {Channel: "{source}.retry.1m", Delay: time.Minute}}
	for name, c := range map[string]struct {
		fixture func() brokertest.Fixture
		stages  []broker.Stage
	}{
		"log":                {func() brokertest.Fixture { return brokertest.NewLog() }, nil},
		"log with stages":    {func() brokertest.Fixture { return brokertest.NewLog() }, stages},
		"timed":              {func() brokertest.Fixture { return brokertest.NewTimed() }, nil},
		"counting":           {func() brokertest.Fixture { return brokertest.NewCounting() }, nil},
		"mailbox":            {func() brokertest.Fixture { return brokertest.NewMailbox() }, nil},
		"mailbox, of stages": {func() brokertest.Fixture { return brokertest.NewMailbox() }, stages},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fixture := c.fixture()
				driver := fixture.Join(t, c.stages...)
				fixture.Produce(t, broker.Publication{Channel: fixture.Source(), Value: []byte("x"),
					Headers: []broker.RecordHeader{{Name: broker.HeaderType, Value: []byte("fresh")}}})
				source, err := broker.New(broker.Config{Driver: driver, Letters: broker.DefaultLetters})
				if err != nil {
					t.Fatal(err)
				}
				w, err := worker.New(worker.Config{Source: source, Handler: nixie.Routes(), Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- w.Run(ctx) }()
				letters := broker.ChannelName(broker.DefaultLetters, fixture.Source())
				time.Sleep(nixie.DefaultUnknownTypes - time.Second)
				if got := fixture.Records(t, letters); len(got) > 0 {
					t.Errorf("it died too soon: %+v", got[0].Headers)
				}
				time.Sleep(3 * time.Minute)
				got := fixture.Records(t, letters)
				if len(got) != 1 {
					t.Fatalf("%d letters", len(got))
				}
				back := broker.FromRecord(&got[0])
				var reason string
				for _, h := range back.AllHeaders {
					if h.Name == broker.HeaderReason {
						reason = string(h.Value)
					}
				}
				if reason != string(nixie.ReasonUnknownType) {
					t.Errorf("it died of %q", reason)
				}
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if err := driver.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
