package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/telemetry"
	"github.com/nixie-go/nixie/worker"
)

// A program counts what happens for Prometheus, and logs each death. A server would offer the
// registry at /metrics; the example prints what a scrape reads of one metric.
func Example() {
	registry := prometheus.NewRegistry()
	metrics, err := telemetry.Prometheus(registry)
	if err != nil {
		fmt.Println(err)
		return
	}
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: short}))
	observer := nixie.Tee(metrics.Observer(), telemetry.Logs(logger))
	st := store.Observe(memory.New(memory.Options{}), observer)
	w, err := worker.NewDesk(worker.Config{
		Source: store.NewSource(st, "billing"), Observer: observer,
		Logger: slog.New(slog.DiscardHandler), // telemetry.Logs has all that it would say
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	if _, err := st.Enqueue(ctx, nixie.Message{Queue: "billing", Key: "invoice-1"}); err != nil {
		fmt.Println(err)
		return
	}
	deliveries, err := w.Receive(ctx, nixie.Want{Max: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := w.Done(ctx, deliveries[0], nixie.Permanent(errors.New("no such customer")), time.Now()); err != nil {
		fmt.Println(err)
		return
	}
	families, err := registry.Gather()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range families {
		if f.GetName() == "nixie_dead_total" {
			if _, err := expfmt.MetricFamilyToText(os.Stdout, f); err != nil {
				fmt.Println(err)
			}
		}
	}
	// Output:
	// level=WARN msg="Message dead-lettered" queue=billing source=billing delivery_count=1 cause=permanent error_type=*errors.errorString reason=handler error="no such customer"
	// # HELP nixie_dead_total Messages that died.
	// # TYPE nixie_dead_total counter
	// nixie_dead_total{cause="permanent",queue="billing",reason="handler"} 1
}

// short leaves out what differs with each run.
func short(_ []string, a slog.Attr) slog.Attr {
	switch a.Key {
	case slog.TimeKey, "message_id", "fingerprint":
		return slog.Attr{}
	}
	return a
}
