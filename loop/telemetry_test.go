package loop_test

import (
	"bytes"
	"context"
	"fmt"
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
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/telemetry"
	"github.com/nixie-go/nixie/worker"
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

// Each act of a consumer moves the metrics of the specification, once for a notice, and has its line
// in the log.
func TestTelemetryOfAConsumer(t *testing.T) {
	type handler = func(l loop.DeadLetter[request], e *redrive.Engine) error
	replay := func(l loop.DeadLetter[request], e *redrive.Engine) error {
		return l.Replay(ctx, e, "replayer", "repaired")
	}
	for _, c := range []struct {
		name      string
		handle    handler
		onFailure nixie.Verb
		blind     bool // the store is not observed
		want      []int64
		actions   string
	}{
		{"alert", func(loop.DeadLetter[request], *redrive.Engine) error { return nil }, "", false, []int64{1, 1, 0, 0, 1, 1}, "alert"},
		{"replay", replay, "", false, []int64{1, 1, 1, 0, 1, 1}, "redrive replay"},
		{"replay in a store that is not observed", replay, "", true, []int64{1, 1, 1, 0, 1, 1}, "replay"},
		{"discard", func(loop.DeadLetter[request], *redrive.Engine) error { return errOther }, nixie.Discard, false,
			[]int64{1, 1, 0, 1, 1, 1}, "discard"},
		{"asks to discard", func(loop.DeadLetter[request], *redrive.Engine) error { return nixie.Verdict(nixie.Discard, errOther) }, "",
			false, []int64{1, 1, 0, 1, 1, 1}, "discard"},
		{"fails", func(loop.DeadLetter[request], *redrive.Engine) error { return errOther }, "", false, []int64{1, 0, 0, 0, 0, 0}, ""},
		{"replays and fails", func(l loop.DeadLetter[request], e *redrive.Engine) error {
			_ = replay(l, e)
			return errOther
		}, "", false, []int64{1, 1, 1, 0, 1, 1}, "redrive replay"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				numbers := sdkmetric.NewManualReader()
				told := must(telemetry.OpenTelemetry(noop.NewTracerProvider(), sdkmetric.NewMeterProvider(sdkmetric.WithReader(numbers))))(t)
				var lines bytes.Buffer
				observer := nixie.Tee(told.Observer(), telemetry.Logs(slog.New(slog.NewTextHandler(&lines, nil))))
				var st store.Store = memory.New(memory.Options{})
				if !c.blind {
					st = store.Observe(st, observer)
				}
				requests := must(loop.In[request, result](st, "requests", loop.Config{}))(t)
				dead := must(loop.In[loop.DeadLetter[request], struct{}](st, "requests-dlq", loop.Config{}))(t)
				must(requests.Send(ctx, request{Request: "bad", RequestID: "r-1"}))(t)
				work := worker.Config{Logger: quiet, Observer: observer, Until: worker.Until{Idle: true}}
				main := must(loop.NewMainLoop(loop.MainConfig[string, float64]{
					Requests: requests, Worker: work, DLQ: loop.DLQPolicy{Include: []policy.Matcher{policy.MatchError(errContent)}},
					Execute: func(context.Context, request) (float64, error) { return 0, errContent },
				}))(t)
				if err := main.Run(ctx); err != nil {
					t.Fatal(err)
				}
				pass(time.Minute)
				engine := must(redrive.New(redrive.Config{Store: st, Force: true}))(t)
				consume := func() {
					k := must(loop.NewConsumer(loop.ConsumerConfig[request]{
						Mailbox: dead, Worker: work, OnFailure: c.onFailure,
						Handle: func(_ context.Context, l loop.DeadLetter[request]) error {
							pass(time.Second)
							return c.handle(l, engine)
						},
					}))(t)
					if err := k.Run(ctx); err != nil {
						t.Fatal(err)
					}
				}
				consume()
				if got := counted(t, numbers, "requests"); !slices.Equal(got, c.want) {
					t.Errorf("%s are %v, want %v", seedMetrics, got, c.want)
				}
				var actions []string
				for line := range strings.Lines(lines.String()) {
					about := strings.Contains(line, "dead letter") || strings.Contains(line, "dead-lettered")
					if about && !strings.Contains(line, "request_id=r-1") {
						t.Errorf("without the ID of the request: %s", line)
					}
					if _, action, is := strings.Cut(line, "action="); is && strings.Contains(line, `"Processing dead letter"`) {
						action, _, _ = strings.Cut(action, " ")
						actions = append(actions, strings.TrimSpace(action))
					}
				}
				if got := strings.Join(actions, " "); got != c.actions {
					t.Errorf("actions are %q, want %q:\n%s", got, c.actions, &lines)
				}
				if !strings.Contains(lines.String(), `"Message dead-lettered"`) {
					t.Errorf("no line of the death:\n%s", &lines)
				}
				if strings.Contains(c.name, "replay") { // its notice is history, and counts no more
					pass(2 * time.Hour)
					consume()
					if n := must(dead.ApproximateCount(ctx))(t); n != 0 {
						t.Errorf("%d notices are left", n)
					}
					if got := counted(t, numbers, "requests"); !slices.Equal(got, c.want) {
						t.Errorf("afterwards %s are %v, want %v", seedMetrics, got, c.want)
					}
				}
				t.Log(fmt.Sprint(c.name, ": ", counted(t, numbers, "requests")))
			})
		})
	}
}
