package serve

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/nixie-go/nixie"
)

// collector answers with its statuses one after the other, and at last with 200. It keeps the last
// request.
type collector struct {
	*httptest.Server
	statuses []int
	asked    int
	path     string
	header   http.Header
	body     []byte
}

func newCollector(t *testing.T, statuses ...int) *collector {
	t.Helper()
	c := &collector{statuses: statuses}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.asked++
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			var err error
			if body, err = gzip.NewReader(r.Body); err != nil {
				t.Error(err)
			}
		}
		c.body, _ = io.ReadAll(body)
		c.path, c.header = r.URL.Path, r.Header
		if len(c.statuses) > 0 {
			w.WriteHeader(c.statuses[0])
			c.statuses = c.statuses[1:]
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// sender makes a sender of variables, in pairs.
func sender(t *testing.T, signal string, pairs ...string) (*otlp, error) {
	t.Helper()
	s, err := newOTLP(func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}, signal)
	if err == nil {
		s.repeat = time.Millisecond
	}
	return s, err
}

func spansOf(name string) []*tracepb.ResourceSpans {
	return []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{Name: name}}}}}}
}

func TestTracesReachTheCollector(t *testing.T) {
	c := newCollector(t, http.StatusServiceUnavailable, http.StatusTooManyRequests)
	s, err := sender(t, "traces", "OTEL_EXPORTER_OTLP_ENDPOINT", c.URL+"/", "OTEL_EXPORTER_OTLP_COMPRESSION", "gzip",
		"OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, team = ops")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.UploadTraces(t.Context(), spansOf("process orders")); err != nil {
		t.Fatal(err)
	}
	var got tracepb.TracesData
	if err := proto.Unmarshal(c.body, &got); err != nil || got.ResourceSpans[0].ScopeSpans[0].Spans[0].Name != "process orders" {
		t.Errorf("%v, %v", &got, err)
	}
	if c.asked != 3 || c.path != "/v1/traces" || c.header.Get("Api-Key") != "a b" || c.header.Get("Team") != "ops" {
		t.Errorf("asked %d times at %s with %v", c.asked, c.path, c.header)
	}
}

func TestMetricsReachTheCollector(t *testing.T) {
	c := newCollector(t)
	s, err := sender(t, "metrics", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", c.URL+"/custom")
	if err != nil {
		t.Fatal(err)
	}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(otlpMetrics{s})))
	meter := provider.Meter("nixie")
	sum, _ := meter.Int64Counter("dlq.messages.sent")
	depth, _ := meter.Int64Gauge("dlq.queue.depth")
	took, _ := meter.Float64Histogram("dlq.processing.duration_ms")
	sum.Add(t.Context(), 3)
	depth.Record(t.Context(), 7)
	took.Record(t.Context(), 12.5)
	if err := provider.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	var got metricspb.MetricsData
	if err := proto.Unmarshal(c.body, &got); err != nil {
		t.Fatal(err)
	}
	list := got.ResourceMetrics[0].ScopeMetrics[0].Metrics
	if len(list) != 3 || list[0].GetSum().DataPoints[0].GetAsInt() != 3 || !list[0].GetSum().IsMonotonic ||
		list[1].GetGauge().DataPoints[0].GetAsInt() != 7 || list[2].GetHistogram().DataPoints[0].GetSum() != 12.5 || c.path != "/custom" {
		t.Errorf("%s got %v", c.path, list)
	}
	if name := got.ResourceMetrics[0].Resource.Attributes[0].Key; name != "service.name" {
		t.Errorf("resource begins with %s", name)
	}
}

// What a collector refuses for good is not sent again, and its answer is in the error.
func TestRefusedForGood(t *testing.T) {
	c := newCollector(t, http.StatusBadRequest)
	s, err := sender(t, "traces", "OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.UploadTraces(t.Context(), spansOf("x")); err == nil || !strings.Contains(err.Error(), "400") || c.asked != 1 {
		t.Errorf("asked %d times: %v", c.asked, err)
	}
}

// A call ends when its time is over, and when the program ends.
func TestHangingCollector(t *testing.T) {
	hang := make(chan struct{})
	asked := make(chan struct{}, 2)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-hang
	}))
	defer server.Close()
	defer close(hang)
	s, err := sender(t, "traces", "OTEL_EXPORTER_OTLP_ENDPOINT", server.URL, "OTEL_EXPORTER_OTLP_TIMEOUT", "20")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.UploadTraces(t.Context(), spansOf("x")); err == nil {
		t.Error("no error after its time")
	}
	s.timeout = time.Hour
	sent := make(chan error)
	go func() { sent <- s.UploadTraces(context.Background(), spansOf("x")) }()
	<-asked
	<-asked
	if err := s.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	if err := <-sent; err == nil {
		t.Error("no error after the end")
	}
}

func TestBadVariablesOfOTLP(t *testing.T) {
	for _, tc := range [][]string{
		{"OTEL_EXPORTER_OTLP_HEADERS", "no value"},
		{"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "a=%zz"},
		{"OTEL_EXPORTER_OTLP_TIMEOUT", "10s"},
		{"OTEL_EXPORTER_OTLP_TIMEOUT", "-1"},
		{"OTEL_EXPORTER_OTLP_CERTIFICATE", "otlp_test.go"},
		{"OTEL_EXPORTER_OTLP_CLIENT_KEY", "nowhere"},
	} {
		_, err := sender(t, "traces", tc...)
		if nixie.CodeOf(err) != nixie.CodeInvalid {
			t.Errorf("%s: %v", tc, err)
			continue
		}
		t.Log(err)
	}
}
