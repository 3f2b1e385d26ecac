package loop_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/telemetry"
)

// seedMetrics are the counters and histograms of the specification, in its order.
var seedMetrics = []string{"dlq.messages.sent", "dlq.messages.processed", "dlq.messages.replayed", "dlq.messages.discarded",
	"dlq.message.age_seconds", "dlq.processing.duration_ms"}

// counted returns the values of the metrics of the specification for a queue: of histograms how
// many values they have.
func counted(t *testing.T, from *sdkmetric.ManualReader, queue string) (list []int64) {
	t.Helper()
	var got metricdata.ResourceMetrics
	if err := from.Collect(ctx, &got); err != nil {
		t.Fatal(err)
	}
	values := map[string]int64{}
	for _, scope := range got.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					if of, _ := p.Attributes.Value("queue"); of.AsString() == queue {
						values[m.Name] += p.Value
					}
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					if of, _ := p.Attributes.Value("queue"); of.AsString() == queue {
						values[m.Name] += int64(p.Count)
					}
				}
			}
		}
	}
	for _, name := range seedMetrics {
		list = append(list, values[name])
	}
	return list
}

// act does with a dead letter what a handler may do.
type act func(l deadRequest, e *redrive.Engine) error

func alerts(deadRequest, *redrive.Engine) error { return nil }

func fails(deadRequest, *redrive.Engine) error { return errOther }

func asksToDiscard(deadRequest, *redrive.Engine) error { return nixie.Verdict(nixie.Discard, errOther) }

func replays(l deadRequest, e *redrive.Engine) error { return l.Replay(ctx, e, "replayer", "repaired") }

func replaysAndFails(l deadRequest, e *redrive.Engine) error {
	return errors.Join(replays(l, e), errOther)
}

// Each act of a consumer moves the metrics of the specification, once for a notice, and has its
// line in the log.
func TestTelemetryOfAConsumer(t *testing.T) {
	for _, c := range []struct {
		name      string
		act       act
		onFailure nixie.Verb
		blind     bool    // the store is not observed
		want      []int64 // as seedMetrics
		actions   string  // in the log
	}{
		{"alert", alerts, "", false, []int64{1, 1, 0, 0, 1, 1}, "alert"},
		{"replay", replays, "", false, []int64{1, 1, 1, 0, 1, 1}, "redrive replay"},
		{"replay in a store that is not observed", replays, "", true, []int64{1, 1, 1, 0, 1, 1}, "replay"},
		{"discard", fails, nixie.Discard, false, []int64{1, 1, 0, 1, 1, 1}, "discard"},
		{"asks to discard", asksToDiscard, "", false, []int64{1, 1, 0, 1, 1, 1}, "discard"},
		{"fails", fails, "", false, []int64{1, 0, 0, 0, 0, 0}, ""},
		{"replays and fails", replaysAndFails, "", false, []int64{1, 1, 1, 0, 1, 1}, "redrive replay"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatched(t, c.blind)
				w.oneDies(t)
				pass(time.Minute)
				w.consume(t, c.act, c.onFailure)
				got := counted(t, w.numbers, "requests")
				if !slices.Equal(got, c.want) {
					t.Errorf("%s are %v, want %v", seedMetrics, got, c.want)
				}
				if got := w.actions(t); got != c.actions {
					t.Errorf("actions are %q, want %q:\n%s", got, c.actions, &w.lines)
				}
				t.Log(c.name, got)
				if !strings.Contains(c.name, "replay") {
					return
				}
				pass(2 * time.Hour) // its notice is history, and counts no more
				w.consume(t, c.act, c.onFailure)
				if n := must(w.dead.ApproximateCount(ctx))(t); n != 0 {
					t.Errorf("%d notices are left", n)
				}
				if got := counted(t, w.numbers, "requests"); !slices.Equal(got, c.want) {
					t.Errorf("afterwards %s are %v, want %v", seedMetrics, got, c.want)
				}
			})
		})
	}
}

// watched is a hospital whose metrics and log are read.
type watched struct {
	*hospital
	observer *nixie.Observer
	numbers  *sdkmetric.ManualReader
	lines    bytes.Buffer
}

func newWatched(t *testing.T, blind bool) *watched {
	t.Helper()
	w := &watched{numbers: sdkmetric.NewManualReader()}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.numbers))
	told := must(telemetry.OpenTelemetry(noop.NewTracerProvider(), meters))(t)
	w.observer = nixie.Tee(told.Observer(), telemetry.Logs(slog.New(slog.NewTextHandler(&w.lines, nil))))
	var st store.Store = memory.New(memory.Options{})
	if !blind {
		st = store.Observe(st, w.observer)
	}
	w.hospital = newHospital(t, st)
	w.config.Observer = w.observer
	return w
}

// oneDies lets a request die.
func (w *watched) oneDies(t *testing.T) {
	t.Helper()
	must(w.requests.Send(ctx, request{Request: "bad", RequestID: "r-1"}))(t)
	w.work(t)
}

func (w *watched) consume(t *testing.T, do act, onFailure nixie.Verb) {
	t.Helper()
	k := must(loop.NewConsumer(loop.ConsumerConfig[request]{Mailbox: w.dead, Worker: w.config, OnFailure: onFailure,
		Handle: func(_ context.Context, l deadRequest) error { pass(time.Second); return do(l, w.engine) }}))(t)
	if err := k.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// actions returns the actions in the log. Each line about the dead letter names its request.
func (w *watched) actions(t *testing.T) string {
	t.Helper()
	var actions []string
	died := false
	for line := range strings.Lines(w.lines.String()) {
		handled := strings.Contains(line, `"Processing dead letter"`)
		died = died || strings.Contains(line, `"Message dead-lettered"`)
		if (handled || strings.Contains(line, "dead-lettered")) && !strings.Contains(line, "request_id=r-1") {
			t.Errorf("without the ID of the request: %s", line)
		}
		if _, action, is := strings.Cut(line, "action="); is && handled {
			action, _, _ = strings.Cut(action, " ")
			actions = append(actions, strings.TrimSpace(action))
		}
	}
	if !died {
		t.Errorf("no line of the death:\n%s", &w.lines)
	}
	return strings.Join(actions, " ")
}
