package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// BenchmarkAnalyzeFrom looks at 100,000 letters on a real broker: go test -run '^$' -bench
// AnalyzeFrom -benchtime 3x ./internal/cli
func BenchmarkAnalyzeFrom(b *testing.B) {
	const letters = 100_000
	server, err := testservers.MakeKafka(b.Context())
	if err != nil {
		b.Skip(err)
	}
	defer func() { _ = server.Stop() }()
	topic := fmt.Sprintf("analyze-%d.dlq", os.Getpid())
	client, err := kgo.NewClient(kgo.SeedBrokers(server.Seed))
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	list := make([]*kgo.Record, letters)
	for n := range list {
		list[n] = &kgo.Record{Topic: topic, Key: fmt.Append(nil, n), Value: fmt.Appendf(nil, "%0200d", n), Headers: []kgo.RecordHeader{
			{Key: broker.HeaderTopic, Value: []byte("analyze")}, {Key: broker.HeaderFailureReason, Value: []byte("permanent_error")},
			{Key: broker.HeaderException, Value: []byte("com.shop.OrderException")},
			{Key: broker.HeaderExceptionText, Value: fmt.Appendf(nil, "order %d has no customer %d", n, n%100)},
			{Key: broker.HeaderStack, Value: []byte(strings.Repeat("\tat com.shop.Orders.take(Orders.java:42)\n", 20))},
		}}
	}
	ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute)
	defer cancel()
	if _, err := kadm.NewClient(client).CreateTopic(ctx, 4, 1, nil, topic); err != nil {
		b.Fatal(err)
	}
	if err := client.ProduceSync(ctx, list...).FirstErr(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		var out bytes.Buffer
		code := Main([]string{"dlq", "analyze", "--from", "kafka://" + server.Seed + "/" + topic},
			Streams{Out: &out, Err: io.Discard, Env: func(string) string { return "" }, Now: time.Now})
		if code != ExitOK || !strings.Contains(out.String(), "100000 letters, 1 cause") {
			b.Fatal(code, out.String())
		}
	}
	b.ReportMetric(float64(letters*b.N)/b.Elapsed().Seconds(), "letters/s")
}
